"""(schema, from_version) -> the function that lifts a body by exactly one version.

One module per event type that ever changed, oldest change first, frozen once released.
"""

from noetl.wire.upcasting import UpcasterRegistry

RELEASED = UpcasterRegistry()
"""Every upcaster this build ships."""

"""What to do about an error that only its reader can do something about, where it reaches one."""

from noetl.kernel.errors.root import NoETLError
from noetl.kernel.errors.service import PayloadCorrupt, PayloadMissing


def advised(error: NoETLError) -> str:
    """Its message. Whoever looks for lost bytes elsewhere first has no use for the rest of it."""
    if not isinstance(error, (PayloadMissing, PayloadCorrupt)):
        return str(error)
    _, _, name = error.uri.partition("/results/")
    execution = name.partition("/")[0] or "ID"
    return f"{error}; noetl results verify {execution} --repair brings back what an execution lost"

"""What a slot of a stage is told. Apart from the slot: whoever sends it out loads none of it."""

import msgspec

from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId

SILENT_SECONDS_MIN = 60.0
SILENT_LEASES = 3


class SlotTask(msgspec.Struct, frozen=True, kw_only=True):
    """All that a slot is told; it travels in the task itself."""

    server_url: str
    token: str
    execution_id: ExecutionId
    settings: Settings
    variables: dict[str, str]  # of clouds: the keys of its stores
    serve_seconds: float  # after that it ends what it works on and leaves
    silent_seconds_max: float  # after that without an answer it leaves, whatever it works on
    frames_at_once: int = 1
    base: str  # what relative paths in playbooks are relative to

    def __repr__(self) -> str:
        return f"SlotTask({self.server_url!r}, ***)"


def silent_seconds_max(lease_seconds: float) -> float:
    """A coordinator that comes back within this time goes on with the slots that it had. After it,
    all that they held is somebody else's, and the cluster should have its processors again."""
    return max(SILENT_LEASES * lease_seconds, SILENT_SECONDS_MIN)

"""What a slot of a stage is told. Apart from the slot: whoever sends it out loads none of it."""

import msgspec

from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId


class SlotTask(msgspec.Struct, frozen=True, kw_only=True):
    """All that a slot is told; it travels in the task itself."""

    server_url: str
    token: str
    execution_id: ExecutionId
    settings: Settings
    serve_seconds: float  # after that it ends what it works on and leaves
    silent_seconds_max: float  # after that without an answer it leaves, whatever it works on
    frames_at_once: int = 1
    base: str  # what relative paths in playbooks are relative to

    def __repr__(self) -> str:
        return f"SlotTask({self.server_url!r}, ***)"

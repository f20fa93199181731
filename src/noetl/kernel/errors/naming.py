"""What can be wrong with names, and with who agrees on them."""

from noetl.kernel.errors.service import RequestInvalid


class NameInvalid(RequestInvalid):
    code = "name_invalid"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.name = name


class PlacementMismatch(RequestInvalid):
    code = "placement_mismatch"

    def __init__(self, *, server: str, worker: str) -> None:
        super().__init__(
            f"the server keeps results under {server}, the worker under {worker};"
            " give both the same NOETL_RESULT_… settings and the same NOETL_PAYLOAD_URL,"
            " or the worker NOETL_PAYLOAD_URL=server:"
        )
        self.server = server
        self.worker = worker

"""What can be wrong with a stored result that is there and whole, but cannot be read.

PayloadError
└── ResultUnreadable    not a table that this build can read
"""

from noetl.kernel.errors import PayloadError


class ResultUnreadable(PayloadError):
    code = "result_unreadable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the stored result {reason}")

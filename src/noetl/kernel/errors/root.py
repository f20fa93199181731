"""The root of every error, and the one that is our own fault."""

from typing import ClassVar


class NoETLError(Exception):
    """Base of the tree; `code` is stable and safe to match on in scripts and clients."""

    code: ClassVar[str] = "noetl"
    retryable: ClassVar[bool] = False


class InvariantBroken(NoETLError):
    code = "invariant_broken"

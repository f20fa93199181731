"""Names that people give and an index holds: what fits, and what is refused in their words."""

from noetl.kernel.errors import RequestInvalid

KEY_BYTES_MAX = 1_000
"""An entry of an index has less than 2,700, and a key shares it with tenant and organization."""


def is_key(text: str) -> bool:
    """Whether there can be a row of that name."""
    try:
        return "\0" not in text and len(text.encode()) <= KEY_BYTES_MAX
    except UnicodeEncodeError:
        return False


def checked_key(text: str, what: str) -> str:
    if not is_key(text):
        raise RequestInvalid(
            f"{what} is longer than {KEY_BYTES_MAX} bytes or holds a character that a database"
            " cannot keep; choose another one"
        )
    return text

"""One name as exactly one part of a path: it can neither end the part nor climb out of it."""

import re
from urllib.parse import quote, unquote

from noetl.kernel.canonical_json import sha256_hex
from noetl.kernel.errors import NameInvalid

PART_LENGTH_MAX = 255
"""Of a part of a key: stores that are folders allow no longer names."""

_UNCHANGED = re.compile(r"[A-Za-z0-9_~\-]*")
_HALF = re.compile(r"%[0-9A-F]?\Z")
_PART = re.compile(r"(?:[^%/?#\s]|%[0-9A-Fa-f]{2})+")


def escape(name: str) -> str:
    """Letters, digits, `-`, `_` and `~` stay; everything else is percent-encoded UTF-8.

    The dot too: `..` must not climb, and a part is then also one token of a NATS subject.
    """
    if _UNCHANGED.fullmatch(name):  # as most are, and every effect of every row has names
        return name
    try:
        return quote(name, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise NameInvalid(repr(name), "holds half a character; use text that UTF-8 has") from None


def shortened(part: str) -> str:
    """An escaped name as a part of a key: whole, or its beginning, `=` and the sha256 of it all.

    A letter outside ASCII takes six characters and more. No escaped name has a `=` in it, so a
    shortened one is nobody else's.
    """
    if len(part) <= PART_LENGTH_MAX:
        return part
    digest = sha256_hex(part.encode())
    beginning = _HALF.sub("", part[: PART_LENGTH_MAX - len(digest) - 1])
    return f"{beginning}={digest}"


def unescape(part: str) -> str:
    """The name that a part stands for. It may be less escaped than `escape` would have it."""
    if part in (".", "..") or not _PART.fullmatch(part) or not part.isprintable():
        raise NameInvalid(
            repr(part), "is no part of a name; percent-encode what is not a letter or a digit"
        )
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise NameInvalid(repr(part), "is not percent-encoded UTF-8") from None


def check_given(field: str, name: str) -> None:
    """Refuse a name that would leave its part of the path empty, or that no path can carry."""
    if not name:
        raise NameInvalid(field, "is empty; give it a name")
    escape(name)

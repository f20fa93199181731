"""What plain words mean in YAML 1.2: `on`, `yes` and `no` are text, `012` is twelve."""

import math
import re

from noetl.dsl.nodes import Plain

INTEGER_DIGITS_MAX = 20
_INTEGER_MIN = -(1 << 63)
_INTEGER_MAX = (1 << 64) - 1  # what canonical JSON can carry

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {
    word: value
    for value, words in ((True, "true True TRUE"), (False, "false False FALSE"))
    for word in words.split(" ")
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_FIRST = frozenset("~nNtTfF.+-0123456789")
"""Every word with a meaning starts with one of these, or is empty."""

TAGS = {
    f"tag:yaml.org,2002:{name}": name
    for name in ("str", "int", "float", "bool", "null", "map", "seq")
}


class ScalarRefused(ValueError):
    """The text cannot be what it claims to be; the message says why."""


def resolve(text: str) -> Plain:
    """The value of a word without quotes or tag."""
    if text and text[0] not in _FIRST:
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _NOT_FINITE.fullmatch(text):
        raise ScalarRefused(f"{text} is not a finite number; use null")
    return text


def resolve_tagged(text: str, tag: str) -> Plain:
    """The value of a word with a tag such as `!!int`."""
    name = TAGS.get(tag)
    if name == "str" or tag == "!":
        return text
    if name is None or name in ("map", "seq"):
        raise ScalarRefused(f"the tag {tag!r} is not known here; only plain data is allowed")
    value = resolve(text)
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "null": value is None,
    }
    if not fits[name]:
        raise ScalarRefused(f"{text!r} is tagged !!{name} but is none")
    return value


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS_MAX:
        raise ScalarRefused("the number is too large; put it in quotes to keep it as text")
    number = int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
    if not _INTEGER_MIN <= number <= _INTEGER_MAX:
        raise ScalarRefused("the number is too large; put it in quotes to keep it as text")
    return number


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ScalarRefused("the number is too large; put it in quotes to keep it as text")
    return number

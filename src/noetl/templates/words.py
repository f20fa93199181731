"""Text filters and methods: upper, trim, split and their like, none of which multiplies text."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from noetl.templates.errors import TemplateFailed
from noetl.templates.limits import WIDTH_MAX, check_at_most
from noetl.templates.rendering import Rendering

TextFunction = Callable[..., Any]

PLAIN_METHODS = frozenset(
    {
        *("capitalize", "casefold", "lower", "swapcase", "title", "upper"),
        *("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
        *("splitlines", "partition", "rpartition"),
        *("startswith", "endswith", "find", "rfind", "count"),
        *(
            "isalnum",
            "isalpha",
            "isdecimal",
            "isdigit",
            "islower",
            "isnumeric",
            "isspace",
            "isupper",
        ),
    }
)
"""Methods of `str` whose answer is never much longer than the text."""

_WORD = re.compile(r"\S+")

WIDTH_METHODS = frozenset({"center", "ljust", "rjust", "zfill"})


def text_filter(name: str) -> TextFunction:
    """A filter that is the method of the same name, for any value as text."""

    def run(rendering: Rendering, value: Any, *arguments: Any) -> Any:
        return call_text_method(name, rendering.text(value), arguments)

    return run


def call_text_method(name: str, text: str, arguments: tuple[Any, ...]) -> Any:
    if name in WIDTH_METHODS and arguments:
        check_at_most(arguments[0], WIDTH_MAX, "the width")
    elif name not in PLAIN_METHODS:
        raise TemplateFailed(f"text has no method {name}")
    return getattr(text, name)(*arguments)


def split(rendering: Rendering, text: str, separator: Any = None, count: int = -1) -> list[str]:
    """Stopped one part past the budget, so that it can be refused without being made."""
    parts_max = rendering.budget.steps_left + 1
    return text.split(separator, parts_max if count < 0 else min(count, parts_max))


def string(rendering: Rendering, value: Any) -> str:
    return rendering.text(value)


def trim(rendering: Rendering, value: Any, characters: str | None = None) -> str:
    return rendering.text(value).strip(characters)


def truncate(
    rendering: Rendering, value: Any, length: int = 255, whole: bool = False, end: str = "..."
) -> str:
    """At most `length` characters with the ending; between words unless told otherwise."""
    text = rendering.text(value)
    if len(text) <= length:
        return text
    kept = text[: max(length - len(end), 0)]
    return (kept if whole else kept.rsplit(" ", 1)[0]) + end


def word_count(rendering: Rendering, value: Any) -> int:
    return sum(1 for _ in _WORD.finditer(rendering.text(value)))


def url_encoded(rendering: Rendering, value: Any) -> str:
    if isinstance(value, dict):
        return urlencode({key: rendering.text(item) for key, item in value.items()})
    return quote(rendering.text(value), safe="/")

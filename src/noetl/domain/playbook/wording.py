"""Words for problems: the nearest known name, and lists that read as a sentence."""

from collections.abc import Iterable
from difflib import get_close_matches

_LENGTH_MAX = 64  # comparing longer words costs more than the hint is worth


def nearest(word: str, known: Iterable[str], likeness: float = 0.7) -> str | None:
    """The known word that was probably meant."""
    if len(word) > _LENGTH_MAX:
        return None
    spelled = {each.lower(): each for each in known}
    found = get_close_matches(word.lower(), spelled, n=1, cutoff=likeness)
    return spelled[found[0]] if found else None


def choices(words: Iterable[str]) -> str:
    """`a, b or c`"""
    listed = list(words)
    if len(listed) <= 1:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} or {listed[-1]}"


def shown(word: object) -> str:
    """A word as part of a message, however long it was."""
    text = str(word)
    return text if len(text) <= _LENGTH_MAX else f"{text[: _LENGTH_MAX - 1]}…"

"""Words for problems: the nearest known name, and lists that read as a sentence."""

from collections.abc import Iterable
from difflib import get_close_matches

_LENGTH_MAX = 64  # comparing longer words costs more than the hint is worth
_SLIP_LENGTH_MIN = 4  # shorter words are often one letter from each other


def nearest(word: str, known: Iterable[str], likeness: float = 0.7) -> str | None:
    """The known word that was probably meant."""
    if len(word) > _LENGTH_MAX:
        return None
    spelled = {each.lower(): each for each in known}
    found = get_close_matches(word.lower(), spelled, n=1, cutoff=likeness)
    return spelled[found[0]] if found else None


def misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word of which this one is a slip of the pen: one letter, or how it is joined."""
    names = list(known)
    joined = {_joined(each): each for each in names}
    if _joined(word) in joined:
        return joined[_joined(word)]
    if not _SLIP_LENGTH_MIN <= len(word) <= _LENGTH_MAX:
        return None
    slips = (each for each in names if len(each) >= _SLIP_LENGTH_MIN and _is_slip(word, each))
    return next(slips, None)


def _joined(word: str) -> str:
    return word.replace("_", "").lower()


def _is_slip(word: str, other: str) -> bool:
    """A letter too many, too few or wrong, or two that changed places. Numbers are no slip."""
    if abs(len(word) - len(other)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    if at is None:
        return not (word + other)[-1].isdigit()
    if word[at].isdigit() or other[at : at + 1].isdigit():
        return False
    rest, other_rest = word[at:], other[at:]
    swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return swapped or rest[1:] in (other_rest, other_rest[1:]) or rest == other_rest[1:]


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

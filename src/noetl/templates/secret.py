"""Values that must never be seen, and taking known ones out of what is about to be."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NoReturn, Self

import msgspec

FORMS_KEPT_MAX = 64
MASK: Final = "***"
SUBSTRING_CHARS_MIN = 4  # shorter ones would tear holes into ordinary text
NUMBER_DIGITS_MIN = 6  # a shorter number is found among ordinary ones too often


class Secret:
    """Opaque: every way to look at it shows `***`, and it equals nothing but itself."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """For workers, at the moment of use."""
        return self._value

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled; send its name and look it up there")


def masked(value: Any) -> Any:
    """A copy that may be recorded: every Secret is `***`. Names of keys decide nothing."""
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return value


def revealed(value: Any) -> Any:
    """The value with its secrets in the open; the value itself where there are none."""
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, dict):
        items = {key: revealed(item) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    if isinstance(value, list):
        parts = [revealed(item) for item in value]
        same = all(part is item for part, item in zip(parts, value, strict=True))
        return value if same else parts
    return value


def scrub(value: Any, secrets: Iterable[Secret]) -> Any:
    """Without the secrets' own values, wherever in text they stand; the value itself if there are
    none in it."""
    return scrub_forms(value, forms_of(secrets))


def scrub_forms(value: Any, forms: Sequence[str]) -> Any:
    """The same, for forms that are known already."""
    if isinstance(value, (dict, list)) and not _may_hold(value, forms):
        return value
    return _scrubbed(value, forms)


def _may_hold(value: Any, forms: Sequence[str]) -> bool:
    """Looks at all of its text at once, as JSON: most values hold no secret, and are large."""
    try:
        written, parts = msgspec.json.encode(value), _parts_of_json(tuple(forms))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return True  # a Secret, or what JSON does not know
    for part in parts:  # noqa: SIM110 - `any` of a generator costs twice as much
        if part in written:
            return True
    return False


@lru_cache(FORMS_KEPT_MAX)
def _parts_of_json(forms: tuple[str, ...]) -> tuple[bytes, ...]:
    """How the forms stand in JSON; short ones count only where they are a whole text."""
    written = (msgspec.json.encode(form) for form in forms)
    return tuple(
        text[1:-1] if len(form) >= SUBSTRING_CHARS_MIN else text
        for form, text in zip(forms, written, strict=True)
    )


def forms_of(secrets: Iterable[Secret]) -> Sequence[str]:
    """What to look for, as it may be written."""
    return _forms_of(frozenset(secret.reveal() for secret in secrets))


@lru_cache(FORMS_KEPT_MAX)
def _forms_of(texts: frozenset[str]) -> tuple[str, ...]:
    """Rows of a loop come with the same secrets."""
    values = texts - {""}
    # Inside JSON text a quote or a line break in a secret is written in another way.
    escaped = {json.dumps(value)[1:-1] for value in values}
    escaped |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in values}
    # Longest first: a secret that contains another one must not be left half standing.
    return tuple(sorted(values | escaped, key=lambda form: (-len(form), form)))


def _scrubbed(value: Any, forms: Sequence[str]) -> Any:
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, str):
        return _scrubbed_text(value, forms)
    if isinstance(value, dict):
        return {_scrubbed(key, forms): _scrubbed(item, forms) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_scrubbed(item, forms) for item in value]
    return MASK if _is_secret_number(value, forms) else value


def _is_secret_number(value: Any, forms: Sequence[str]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    text = str(value)
    return len(text) >= NUMBER_DIGITS_MIN and text in forms


def _scrubbed_text(text: str, forms: Sequence[str]) -> str:
    if text in forms:
        return MASK
    for form in forms:
        if len(form) >= SUBSTRING_CHARS_MIN:
            text = text.replace(form, MASK)
    return text

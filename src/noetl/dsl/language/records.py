"""What a mapping may hold: its keys, their shapes, and what to say about keys of other times."""

from functools import cached_property
from typing import Literal

import msgspec

from noetl.dsl.language.shapes import Shape

Unknown = Literal["refused", "suspected", "kept"]
"""Suspected: an error when it looks like a misspelling, else a warning."""


WITHOUT_EFFECT = "Of other engines, without effect."
"""The text of a key with a hint."""


class Key(msgspec.Struct, frozen=True):
    shape: Shape
    text: str  # what it is for; editors show it
    aliases: tuple[str, ...] = ()
    required: bool = False
    hint: str = ""  # why it has no effect here, though other engines take it
    usual: str | None = None  # the value of a hint that says how it is anyway


class Record(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    name: str
    words: str  # "a step"
    keys: dict[str, Key]
    unknown: Unknown = "refused"
    retired: dict[str, str] = {}  # a key that once meant something -> what to write today
    ignored: frozenset[str] = frozenset()  # seen in real playbooks, without effect
    needs: tuple[tuple[str, ...], ...] = ()  # of each group at least one

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Every accepted spelling -> the main one."""
        main = {name: name for name in self.keys}
        return {alias: name for name, key in self.keys.items() for alias in key.aliases} | main

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, key in self.keys.items() if key.required)

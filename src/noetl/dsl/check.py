"""Text in, playbook and everything that is wrong with it out."""

import msgspec

from noetl.domain.playbook.model import Playbook
from noetl.dsl.build import build
from noetl.dsl.load import load, playbook_digest
from noetl.dsl.names import check_names
from noetl.dsl.problems import IsOtherKind, Problem
from noetl.dsl.templates import check_templates


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`playbook` is there only when nothing keeps it from running."""

    digest: str
    playbook: Playbook | None
    problems: tuple[Problem, ...]
    asks_for: tuple[str, ...] = ()  # names that only a request can bring; without one, empty

    @property
    def is_sound(self) -> bool:
        """Warnings do not count."""
        return self.playbook is not None


def check(text: str | bytes, is_other_kind: IsOtherKind | None = None) -> Checked:
    """`is_other_kind` knows the tools of other packages; their parameters are taken as written."""
    loaded = load(text, is_other_kind)
    problems = loaded.problems
    playbook = None
    asks_for: tuple[str, ...] = ()
    if loaded.root is not None:
        playbook = build(loaded.root, problems)
        check_templates(loaded.root, problems)
        if playbook is not None and not problems.has_errors:  # else names are missing that are not
            asks_for = check_names(loaded.root, playbook, problems)
    return Checked(
        digest=playbook_digest(text),
        playbook=None if problems.has_errors else playbook,
        problems=problems.sorted(),
        asks_for=asks_for,
    )

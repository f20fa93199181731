"""A frozen state stands in for its events only when everything about it matches."""

from typing import Any

import pytest

from noetl.domain.snapshots import INTERVAL_EVENTS, FoldIdentity, is_due, why_unusable
from noetl.testing.compliance.snapshot_store import snapshot
from noetl.testing.histories import PLAYBOOK_DIGEST

THIS_BUILD = FoldIdentity(fold_version=1, registry_digest="ab" * 32)


def test_a_snapshot_of_this_build_is_used() -> None:
    assert why_unusable(snapshot(5), THIS_BUILD) is None
    assert why_unusable(snapshot(5), THIS_BUILD, playbook_digest=PLAYBOOK_DIGEST) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"fold_version": 2}, "made by fold 2, this is fold 1"),
        ({"registry_digest": "00" * 32}, "made with another set of upcasters"),
        ({"canonical_form": "c2"}, "made in canonical form c2"),
        ({"playbook_digest": "00" * 32}, "made of another playbook"),
        ({"playbook_digest": None}, "made of another playbook"),
        ({"checksum": "00" * 32}, "its bytes do not match its checksum"),
    ],
)
def test_anything_that_does_not_match_is_a_reason(fields: dict[str, Any], reason: str) -> None:
    frozen = snapshot(5, **fields)
    assert why_unusable(frozen, THIS_BUILD, playbook_digest=PLAYBOOK_DIGEST) == reason


def test_a_caller_that_has_not_read_the_stream_does_not_compare_playbooks() -> None:
    assert why_unusable(snapshot(5, playbook_digest=None), THIS_BUILD) is None


@pytest.mark.parametrize(
    ("version", "last", "due"),
    [(0, 0, False), (9, 0, False), (10, 0, True), (19, 10, False), (20, 10, True), (500, 10, True)],
)
def test_a_snapshot_is_due_after_so_many_events(version: int, last: int, due: bool) -> None:
    assert is_due(version, last, interval_events=10) is due


def test_the_interval_is_ten_thousand_events_unless_told() -> None:
    assert INTERVAL_EVENTS == 10_000
    assert not is_due(9_999, 0)
    assert is_due(10_000, 0)

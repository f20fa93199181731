"""Whoever comes late is told how it went, and not how fast it seemed to go."""

import pytest

from noetl.cli.following import Following
from noetl.domain.events import StepExited
from tests.cli.told_progress import A, Told


def test_of_what_is_long_past_only_the_ends_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told().loop(200).frame(11, 50).frame(22, 50)
    told.tell(30, StepExited(step=A, status="COMPLETED"))
    Following(is_quiet=False)(told.story)
    assert capsys.readouterr().err == "✓ a  100 of 200 rows  30.0 s\n"

"""The guide's examples check clean, and its table of tools is the checker's own."""

import re
from pathlib import Path

import pytest

from noetl.dsl.check import check
from noetl.dsl.language.kinds import RUNNING_KINDS

GUIDE = (Path(__file__).resolve().parents[3] / "docs/guides/playbooks.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_guide_has_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example_is_in_order(example: str) -> None:
    assert check(example).problems == ()


def test_every_tool_is_in_the_table() -> None:
    table = GUIDE[GUIDE.index("| Kind |") : GUIDE.index("Every tool takes")]
    rows = [line.split("|")[1] for line in table.splitlines()[2:] if line]
    kinds = {kind for row in rows for kind in re.findall(r"`(\w+)`", row)}

    assert kinds == set(RUNNING_KINDS)

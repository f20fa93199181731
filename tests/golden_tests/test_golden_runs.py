"""Playbooks of every shape of the language run and come to what is written beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden_tests.golden_engine import Runs
from tests.golden_tests.golden_runs import FOLDERS, GIVEN_FILES, Golden, goldens

ABOUT_THE_REQUEST = frozenset({"payload", "needs"})
PLAYBOOK = b"apiVersion:"
SUITE_MIN = 60

ALL = [
    pytest.param(golden, id=golden.name, marks=[pytest.mark.servers] if golden.needs else [])
    for golden in goldens()
]


@pytest.mark.parametrize("golden", ALL)
async def test_it_comes_to_what_is_written_beside_it(golden: Golden, runs: Runs) -> None:
    ended = runs.of(golden)
    expected = golden.expected(ended.places)
    told = ended.told()

    for part in [part for part in expected if part not in ABOUT_THE_REQUEST]:
        found = _comparable(part, told[part], expected[part])
        assert found == expected[part], (part, ended.ending.step, told["error"])


def _comparable(part: str, told: Any, expected: Any) -> Any:
    """Of counts and of an error only what the expectation speaks of."""
    if part == "event_counts":
        return {name: told.get(name, 0) for name in expected}
    if part == "error" and told is not None:
        says = expected.get("says")
        says_it = {} if says is None or says not in told["message"] else {"says": says}
        return {"kind": told["kind"], **says_it}
    return told


async def test_no_secret_is_in_anything_that_was_kept(runs: Runs) -> None:
    kept = _contents_of(runs.home)
    assert kept
    for name, content in kept.items():
        for secret in runs.secrets:
            assert secret.encode() not in content, name

    read = 0
    while page := await runs.engine.platform.log.tail(after_position=read):
        for stored in page:
            for secret in runs.secrets:
                assert json.dumps(secret)[1:-1].encode() not in stored.canonical, stored
        read = page[-1].position
    assert read > 0


def _contents_of(home: Path) -> dict[str, bytes]:
    """Log, payloads, credentials and work; not what authors wrote into their playbooks."""
    files = [path for path in home.rglob("*") if path.is_file()]
    own = [path for path in files if not path.is_relative_to(home / GIVEN_FILES)]
    contents = {str(path.relative_to(home)): path.read_bytes() for path in own}
    return {name: content for name, content in contents.items() if not content.startswith(PLAYBOOK)}


def test_every_run_is_expected_to_come_to_something() -> None:
    for golden in goldens():
        expected = golden.expected({})
        assert expected["status"] in ("COMPLETED", "FAILED"), golden.name
        assert ("result" in expected) or ("error" in expected), golden.name
    assert len(goldens()) >= SUITE_MIN
    for folder in FOLDERS:
        playbooks = {path.stem for path in folder.glob("*.yaml")}
        answers = {path.name.removesuffix(".expected.json") for path in folder.glob("*.json")}
        assert answers == playbooks

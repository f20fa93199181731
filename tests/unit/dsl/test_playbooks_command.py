"""`noetl playbooks check` and `noetl playbooks schema`, as a person uses them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from noetl.cli.playbooks import playbooks
from noetl.dsl.load import BYTES_MAX, playbook_digest
from noetl.dsl.schema import playbook_schema
from tests.unit.dsl.writing import with_steps

GOOD = with_steps("- {step: start, tool: {kind: noop}}")
BAD = with_steps("- {step: start, next: nowhere}")
WARNED = with_steps("- {step: start, command: ls}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"good.yaml": GOOD, "bad.yaml": BAD, "warned.yaml": WARNED}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(playbooks, list(arguments), input=given)


def test_a_good_playbook_is_ok(folder: Path) -> None:
    done = run("check", "good.yaml")

    assert (done.exit_code, done.stdout, done.stderr) == (0, "good.yaml: ok, 1 step\n", "")


def test_a_problem_names_file_line_and_column_and_says_how_to_fix_it(folder: Path) -> None:
    done = run("check", "good.yaml", "bad.yaml")

    assert done.exit_code == 1
    assert done.stdout == (
        "good.yaml: ok, 1 step\n"
        "bad.yaml:5:25: error: the arc of step 'start' leads to the step 'nowhere', which does not"
        " exist; use an existing step, or `end`: start or end\n"
    )
    assert done.stderr == "1 error in 1 of 2 files\n"


def test_warnings_are_shown_and_do_not_fail(folder: Path) -> None:
    done = run("check", "warned.yaml")

    assert done.exit_code == 0
    assert done.stdout == (
        "warned.yaml:5:19: warning: 'command' has no effect in a step; remove it\n"
        "warned.yaml: ok, 1 step\n"
    )


def test_json_is_one_object_per_file(folder: Path) -> None:
    done = run("check", "--json", "good.yaml", "bad.yaml")

    good, bad = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 1
    assert good == {
        "file": "good.yaml",
        "ok": True,
        "digest": playbook_digest(GOOD),
        "problems": [],
        "asks_for": [],
    }
    (problem,) = bad["problems"]
    assert (bad["ok"], problem["line"], problem["column"]) == (False, 5, 25)
    assert (problem["path"], problem["severity"]) == ("workflow[0].next", "error")
    assert problem["fix"] == "use an existing step, or `end`: start or end"
    assert done.stderr == ""


def test_a_dash_reads_standard_input(folder: Path) -> None:
    assert run("check", "-", given=GOOD).stdout == "-: ok, 1 step\n"


@pytest.mark.parametrize("arguments", [[], ["missing.yaml"], ["."]])
def test_files_that_cannot_be_read_are_wrong_usage(folder: Path, arguments: list[str]) -> None:
    assert run("check", *arguments).exit_code == 2


def test_a_file_that_is_too_large_is_not_read_to_its_end(folder: Path) -> None:
    (folder / "large.yaml").write_text("#" * (BYTES_MAX + 100), encoding="utf-8")

    done = run("check", "large.yaml")

    assert done.exit_code == 1
    assert f"a playbook has at most {BYTES_MAX}" in done.stdout


def test_the_schema_is_printed_as_json() -> None:
    assert json.loads(run("schema").stdout) == playbook_schema()

"""Playbooks are registered, listed and shown as they were written."""

from pathlib import Path

import pytest

from tests.cli.shells import HELLO, LOOP, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write("hello.yaml", HELLO)
    shell.write("loop.yaml", LOOP)
    return shell


def test_registering_twice_is_once_and_a_change_is_a_version(shell: Shell) -> None:
    first = shell.noetl("playbooks", "register", "hello.yaml", "loop.yaml")
    assert first.stdout.splitlines() == ["registered: guides/hello@1", "registered: guides/loop@1"]
    assert shell.noetl("playbooks", "register", "hello.yaml").stdout == "known: guides/hello@1\n"
    shell.write("hello.yaml", HELLO + "# more\n")
    again = shell.json("playbooks", "register", "hello.yaml")
    assert (again["path"], again["version"], again["is_new"]) == ("guides/hello", 2, True)

    listed = shell.noetl("playbooks", "list").stdout
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [
        ["guides/hello", "2"],
        ["guides/loop", "1"],
    ]
    versions = shell.noetl("playbooks", "list", "--path", "guides/hello", "--json").stdout
    assert versions.count("\n") == 2

    assert shell.noetl("playbooks", "show", "guides/hello@1", "--text").stdout == HELLO
    assert shell.json("playbooks", "show", "guides/hello")["version"] == 2


def test_one_wrong_file_keeps_all_out(shell: Shell) -> None:
    shell.write("wrong.yaml", HELLO.replace("kind: python", "kind: pithon"))
    done = shell.noetl("playbooks", "register", "hello.yaml", "wrong.yaml")
    assert done.returncode == 2
    assert "wrong.yaml:8:13: error: " in done.stderr
    assert not (shell.folder / ".noetl").exists()


def test_what_is_not_there_is_said(shell: Shell) -> None:
    shell.noetl("playbooks", "register", "hello.yaml")
    done = shell.noetl("playbooks", "show", "guides/helo")
    assert done.returncode == 1
    assert "did you mean 'guides/hello'" in done.stderr
    done = shell.noetl("playbooks", "show", "guides/hello@7")
    assert "the newest is 1" in done.stderr

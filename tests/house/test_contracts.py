"""Each import contract is kept on an empty house and broken by one wrong import."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ["cli", "bootstrap", "adapters", "adapters/memory", "adapters/sqlite", "runtime"]
ROOMS += [
    "api",
    "client",
    "spark",
    "results",
    "testing",
    "servers",
    "tools",
    "decider",
    "pipeline",
    "ports",
    "dsl",
    "templates",
    "wire",
    "domain",
    "kernel",
]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package with our rooms and contracts, and nothing inside."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "noetl"
    for room in ["", *ROOMS]:
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    return package


def lint(house: Path) -> str:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=house.parent, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_an_empty_house_keeps_every_contract(house: Path) -> None:
    assert "0 broken" in lint(house)


@pytest.mark.parametrize(
    ("room", "statement", "contract"),
    [
        ("domain", "import noetl.wire", "Rooms stack one way"),
        ("ports", "import noetl.wire", "Rooms stack one way"),
        ("runtime", "import noetl.bootstrap", "Rooms stack one way"),
        ("cli", "import noetl.adapters.memory", "Only bootstrap picks adapters and tools"),
        ("adapters/sqlite", "import noetl.adapters.memory", "Adapters do not know each other"),
        ("domain", "import time", "The domain is pure"),
        ("runtime", "import asyncpg", "Drivers stay in adapters"),
        ("tools", "import pyspark.sql", "Spark stays where Spark is started"),
        ("bootstrap", "import py4j", "Spark stays where Spark is started"),
        ("bootstrap", "import noetl.testing", "Nothing ships with test code inside"),
    ],
)
def test_a_wrong_import_breaks_its_contract(
    house: Path, room: str, statement: str, contract: str
) -> None:
    (house / room / "__init__.py").write_text(f"{statement}\n", encoding="utf-8")

    assert f"{contract} BROKEN" in lint(house)


def test_spark_may_be_used_through_its_room(house: Path) -> None:
    (house / "spark" / "__init__.py").write_text("import pyspark\n", encoding="utf-8")
    (house / "bootstrap" / "__init__.py").write_text("import noetl.spark\n", encoding="utf-8")

    assert "0 broken" in lint(house)


def test_a_room_without_a_place_is_noticed(house: Path) -> None:
    (house / "attic").mkdir()
    (house / "attic" / "__init__.py").touch()

    assert "Rooms stack one way BROKEN" in lint(house)

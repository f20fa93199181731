"""What the documents say is what the program does."""

import re
import subprocess
import sys
from pathlib import Path

import click

from noetl.bootstrap.settings import PREFIX, Settings
from noetl.cli.main import commands
from noetl.domain.events import CATALOGUE
from scripts import reference

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_reference_is_current() -> None:
    assert reference.stale(ROOT / "docs" / "reference") == []


def test_a_stale_reference_is_noticed(tmp_path: Path) -> None:
    assert set(reference.stale(tmp_path)) == set(reference.PAGES)


def test_every_event_has_a_heading() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text()
    assert {f"## `{name}`" for name in CATALOGUE} <= set(page.splitlines())


def test_the_readme_names_every_setting() -> None:
    missing = [name for name in Settings.__struct_fields__ if PREFIX + name.upper() not in README]
    assert missing == []


def test_every_command_of_the_readme_exists() -> None:
    shown = set(re.findall(r"^noetl (\w+) (\w+)", README, re.MULTILINE))
    groups = {name: group for name, group in commands.commands.items()}
    alone = {name for name, group in groups.items() if not isinstance(group, click.Group)}
    assert {name for name in re.findall(r"^noetl (\w+)", README, re.MULTILINE)} == set(groups)
    shown = {(name, child) for name, child in shown if name not in alone}
    known = {
        (name, child)
        for name, group in groups.items()
        if isinstance(group, click.Group)
        for child in group.commands
    }
    assert shown == known


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    broken = [
        f"{page.name}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_the_command_answers_without_heavy_imports() -> None:
    code = (
        "import sys, noetl.cli.main; print([m for m in ('asyncpg','obstore') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

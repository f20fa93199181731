"""What the documents say is what the program does."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from noetl.bootstrap.settings import PREFIX, Settings
from noetl.cli.main import commands
from noetl.domain.events import CATALOGUE
from scripts import reference

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
README = (ROOT / "README.md").read_text()
COMMANDS = (GUIDES / "commands.md").read_text()
SETTINGS = (GUIDES / "settings.md").read_text()


def test_the_reference_is_current() -> None:
    assert reference.stale(ROOT / "docs" / "reference") == []


def test_a_stale_reference_is_noticed(tmp_path: Path) -> None:
    assert set(reference.stale(tmp_path)) == set(reference.PAGES)


def test_every_event_has_a_heading() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text()
    assert {f"## `{name}`" for name in CATALOGUE} <= set(page.splitlines())


def test_the_guide_names_every_setting() -> None:
    missing = [name for name in Settings.__struct_fields__ if PREFIX + name.upper() not in SETTINGS]
    assert missing == []


def known_commands() -> set[tuple[str, str]]:
    """Pairs of words; the second is empty for a command that has no others below it."""
    groups = dict(commands.commands.items())
    alone = {(name, "") for name, group in groups.items() if not isinstance(group, click.Group)}
    return alone | {
        (name, child)
        for name, group in groups.items()
        if isinstance(group, click.Group)
        for child in group.commands
    }


def shown_commands(page: str) -> set[tuple[str, str]]:
    known = known_commands()
    found = re.findall(r"^(?:\$ )?noetl (\w+)(?: (\w+))?", page, re.MULTILINE)
    return {(name, "") if (name, "") in known else (name, child) for name, child in found}


def test_the_guide_shows_every_command() -> None:
    assert shown_commands(COMMANDS) == known_commands()


@pytest.mark.parametrize("page", sorted(GUIDES.glob("*.md")), ids=lambda page: page.stem)
def test_every_command_of_a_guide_exists(page: Path) -> None:
    assert shown_commands(page.read_text()) <= known_commands()


def test_every_command_of_the_readme_exists() -> None:
    assert shown_commands(README) <= known_commands()


def test_the_readme_shows_an_example_as_it_is() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    example = (ROOT / "examples" / "parallel_loop.yaml").read_text()
    assert example.endswith(shown)


def test_what_the_product_is_and_does_is_on_the_first_screen_of_the_readme() -> None:
    first = README.splitlines()[:40]
    assert {"make demo", "make test"} <= {line.partition("  ")[0] for line in first}
    assert any(line.startswith("completed: execution") for line in first)


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

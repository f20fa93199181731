"""How people name a playbook: a file, or a path of the catalogue with or without a version."""

from pathlib import Path

import click

_FILE_ENDINGS = (".yaml", ".yml", ".json")


def is_file(reference: str) -> bool:
    """A file that is there, standard input, or a name that can only be meant as a file."""
    return reference == "-" or Path(reference).is_file() or reference.endswith(_FILE_ENDINGS)


def folder_advice(reference: str) -> str | None:
    """For a name that the catalogue does not have, and that is a folder here."""
    folder = Path(reference)
    if not folder.is_dir():
        return None
    example = next((path for path in sorted(folder.glob("*.y*ml"))), folder / "playbook.yaml")
    return (
        f"{reference} is a folder, and no playbook is registered under it; name a file: {example}"
    )


def parse_reference(reference: str) -> tuple[str, int | None]:
    """`path` or `path@version`."""
    path, at, version = reference.rpartition("@")
    if not at:
        return reference, None
    if not path or not version.isdecimal():
        raise click.UsageError(f"{reference!r} is not PATH or PATH@VERSION; e.g. guides/hello@2")
    return path, int(version)

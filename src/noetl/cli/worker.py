"""`noetl worker`: one more process, here or elsewhere, that works for a server."""

import asyncio
from importlib import import_module

import click

from noetl.bootstrap.logs import configure_logs
from noetl.bootstrap.settings import load_settings
from noetl.cli.output import tell


@click.command()
@click.option("--server", required=True, metavar="URL", help="The server to work for.")
@click.option(
    "--slots",
    type=click.IntRange(1),
    help="Pieces of work at once; by default NOETL_WORKER_SLOTS.",
)
@click.option("--name", help="What it is called; by default the machine and the process.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Shown with the worker, e.g. zone=a. Repeatable.",
)
def worker(server: str, slots: int | None, name: str | None, labels: tuple[str, ...]) -> None:
    """Take work from a server, run it, report it.

    The server's NOETL_INTERNAL_KEY must be set here too when it has one, and NOETL_PAYLOAD_URL must
    name a store that both reach. It is given work of the tools that are installed here. Ctrl-C
    lets what runs come to its end; a second one drops it, and another worker takes it.

    \b
    noetl worker --server http://127.0.0.1:8082 --slots 20
    """
    settings = load_settings()
    known = _labels(labels)
    is_for_people = configure_logs(settings, "info") == "text"
    if is_for_people:
        tell(f"working for {server}; stop with Ctrl-C")
    # Only here: no other command needs an HTTP client and all tools at once.
    remote = import_module("noetl.bootstrap.remote_worker")
    named = remote.Named(name, known)
    asyncio.run(remote.run_worker(settings, server, slots or settings.worker_slots, named))
    if is_for_people:
        tell("stopped")


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [label.partition("=") for label in given]
    for key, sign, _ in pairs:
        if not key or not sign:
            raise click.UsageError(f"--label takes KEY=VALUE, not {key!r}")
    return {key: value for key, _, value in pairs}

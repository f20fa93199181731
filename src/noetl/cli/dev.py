"""`noetl dev`: the HTTP API and a worker in one process."""

import asyncio
from importlib import import_module

import click

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.logs import configure_logs
from noetl.bootstrap.settings import load_settings
from noetl.cli.output import print_json, tell

PORT_MAX = 65_535


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=8082,
    show_default=True,
    help="0 takes any free port.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object once requests are taken."
)
def dev(host: str, port: int, as_json: bool) -> None:
    """Serve the HTTP API and run playbooks, in one process.

    It goes on with every execution of NOETL_HOME that was left. Other commands of this home find
    it by themselves. Addresses that others can reach need NOETL_API_KEY. Ctrl-C or SIGTERM stops
    it: what runs may end within NOETL_DRAIN_SECONDS, the rest goes on at the next start.

    \b
    noetl dev --port 9000
    """
    asyncio.run(_serve(host, port, as_json))


async def _serve(host: str, port: int, as_json: bool) -> None:
    settings = load_settings()
    is_for_people = configure_logs(settings, "info") == "text"

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        if is_for_people:
            tell(f"listening: {address} (in a browser: executions; {address}/docs: the API)")
            tell("stop with Ctrl-C")

    async with open_engine(settings) as engine:
        # Only here: no other command needs the libraries of a server.
        await import_module("noetl.bootstrap.serving").serve(engine, host, port, ready)
        if is_for_people:
            tell("stopping: what runs may end first; Ctrl-C stops at once")
    if is_for_people:
        tell("stopped")

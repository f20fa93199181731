"""`noetl explain`: why is it waiting? Answered by the server of the home, else from the log."""

import asyncio
from importlib import import_module

import click

from noetl.bootstrap.checking import is_other_kind
from noetl.bootstrap.home import Holder
from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.running import holder_of
from noetl.bootstrap.settings import Settings, load_settings
from noetl.cli import options
from noetl.cli.output import print_json, say, shown, tell
from noetl.decider.plan import plan_of
from noetl.domain.execution.rows import TERMINAL
from noetl.kernel.ids import ExecutionId
from noetl.runtime.executions import Executions
from noetl.runtime.explain import explain as sentences_of
from noetl.runtime.playbooks import Playbooks


@click.command()
@click.argument("execution", metavar="ID", type=ExecutionId)
@options.as_json
def explain(execution: ExecutionId, as_json: bool) -> None:
    """Say in plain words what an execution does or waits for.

    \b
    noetl explain 380519836747313152
    """
    settings = load_settings()
    holder = holder_of(settings)
    if holder is not None and holder.address is not None:
        status, sentences = asyncio.run(_asked(holder, execution))
    else:
        status, sentences = asyncio.run(_explain(settings, execution))
    if as_json:
        print_json({"execution_id": execution, "status": status, "sentences": sentences})
        return
    for sentence in sentences:
        say(shown(sentence))
    if status not in TERMINAL and holder is None:
        tell(f"no process runs it now; go on with it: noetl executions resume {execution}")


async def _asked(holder: Holder, execution: ExecutionId) -> tuple[str, list[str]]:
    """A server knows its workers too: which tools they have, and whether there are any."""
    opened = import_module("noetl.cli.server_runs").server_client(holder)
    async with opened as client:
        explained = await client.explained(execution)
        return explained.status, explained.sentences


async def _explain(settings: Settings, execution: ExecutionId) -> tuple[str, list[str]]:
    async with open_platform(settings, create=False) as platform:
        executions = Executions(platform.log, platform.projections, platform.results)
        state = await executions.state(settings.scope, execution)
        digest = state.execution.playbook_digest or ""
        playbooks = Playbooks(platform.catalog, platform.payloads, is_other_kind)
        plan = plan_of(await playbooks.load(settings.scope, digest), digest)
        return state.execution.status, sentences_of(state, plan, platform.clock())

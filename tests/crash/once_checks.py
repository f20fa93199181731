"""What must hold of effects, whenever and however often the process that fired them was killed."""

from dataclasses import dataclass, field

from noetl.bootstrap.platform import Platform
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import certify
from noetl.runtime.effect_entries import EffectEntry
from noetl.runtime.executions import Executions
from noetl.runtime.replay import ReplayRequest
from noetl.runtime.verify_log import verify_stream
from tests.crash.counters import HONOURING
from tests.crash.once_playbook import cycles, is_careful
from tests.crash.once_targets import Targets
from tests.crash.run_checks import check_read_models


@dataclass
class Listed:
    """The ledger of one execution, by cycle."""

    entries: list[EffectEntry] = field(default_factory=list)

    def doubts(self, cycle: str) -> int:
        """How often it may have been fired beside the time that is recorded."""
        return sum(each.doubts for each in self.entries if each.cycle == cycle)

    def in_doubt(self, cycle: str) -> int:
        return sum(each.cycle == cycle and each.state == "in_doubt" for each in self.entries)


async def violations(platform: Platform, execution: ExecutionId, targets: Targets) -> list[str]:
    """What the targets and the ledger do not agree about."""
    executions = Executions(platform.log, platform.projections, platform.results)
    listed = Listed(await executions.effects(DEFAULT_SCOPE, execution))
    wishes = cycles(execution)
    found = [
        f"{wish} was never planned"
        for wish in targets.of_execution(execution)
        if wish not in wishes
    ]
    for wish, cycle in wishes.items():
        times, refusals = targets.effects(wish), listed.in_doubt(cycle)
        at_most = 1 if wish.startswith(HONOURING) or is_careful(cycle) else 1 + listed.doubts(cycle)
        at_least = 0 if is_careful(cycle) and refusals else 1
        if not at_least <= times <= at_most:
            found.append(f"{cycle} happened {times} times, not {at_least} to {at_most}")
        if is_careful(cycle) and refusals > 1:
            found.append(f"{cycle} was refused {refusals} times")
    return found


async def check_log_and_state(platform: Platform, execution: ExecutionId) -> None:
    """The log is whole, and what is replayed from it is what was kept."""
    assert (await verify_stream(platform.log, execution)).is_sound
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    proof = await certify(platform.log, platform.snapshots, request)
    assert proof.proved
    await check_read_models(platform, execution, proof)

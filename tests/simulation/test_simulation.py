"""Whatever fails, and whenever: every run ends, once, and the log says the same as the memory."""

import asyncio
import os

import pytest

from tests.simulation.laws import check_run, check_state_in_memory
from tests.simulation.playbooks import CHILD, WINDING
from tests.simulation.world import World

SEEDS = 120
SEED = "NOETL_SIMULATION_SEED"
"""Set it to a printed seed to see that run alone."""


def seeds() -> list[int]:
    given = os.environ.get(SEED)
    return list(range(SEEDS)) if given is None else [int(given)]


@pytest.mark.parametrize("may_cancel", [False, True], ids=["left alone", "cancelled"])
def test_every_run_ends_once(may_cancel: bool) -> None:
    failed: dict[int, str] = {}
    for seed in seeds():
        try:
            asyncio.run(live(seed, may_cancel=may_cancel))
        except (AssertionError, TimeoutError) as error:
            failed[seed] = str(error)[:1_000]
    told = "\n".join(f"{SEED}={seed}: {why}" for seed, why in list(failed.items())[:3])
    assert not failed, f"{len(failed)} of {SEEDS} seeds failed: {list(failed)[:20]}\n{told}"


async def live(seed: int, *, may_cancel: bool) -> None:
    world = World(seed)
    world.log.faults = world.chance.choice([0.0, 0.02, 0.1, 0.3])
    await world.start(CHILD, WINDING)
    await world.stir(may_cancel=may_cancel)
    await check_state_in_memory(world)
    await world.settle()
    await check_run(world)

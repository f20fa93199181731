"""What `make bench` measures, and what it does about a benchmark that gives no figure."""

from collections.abc import AsyncIterator

import pytest

from benchmarks.__main__ import BENCHMARKS, Benchmark, run
from benchmarks.measurement import Measurement, NoFigure


def _measuring(name: str) -> Benchmark:
    async def measure() -> AsyncIterator[Measurement]:
        yield Measurement(name=name, value=1.0, unit="s", limit=1.0, limit_name="itself")

    return measure


async def _too_slow() -> AsyncIterator[Measurement]:
    raise NoFigure("it has not ended within 1 s")
    yield  # a generator, as all of them are


async def test_one_without_a_figure_says_so_and_the_others_are_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = await run("", {"first": _too_slow, "second": _measuring("second")})
    told = capsys.readouterr()
    assert code == 1
    assert '"name":"second"' in told.out
    assert "no figure of first: it has not ended within 1 s" in told.err


@pytest.mark.parametrize("only", ["", "pft.1", "pft.10x1000"])
async def test_the_largest_runs_only_by_its_whole_name(
    only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "pft.10x1000" in BENCHMARKS
    names = ("pft.1x200", "pft.10x1000")
    assert await run(only, {name: _measuring(name) for name in names}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert ("pft.10x1000" in lines[0]) == (only == "pft.10x1000")

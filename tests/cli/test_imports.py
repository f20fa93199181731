"""What a command does not use, it does not load: `noetl run` answers within a second."""

import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "asyncpg", "duckdb", "nats", "obstore", "prometheus_client", "rich"}
HEAVY |= {"py4j", "pyspark", "starlette", "uvicorn"}


def loaded(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("command", ["run", "executions", "steering", "watch", "dev", "worker"])
def test_a_command_loads_nothing_heavy_before_it_needs_it(command: str) -> None:
    assert not loaded("noetl.cli.main", f"noetl.cli.{command}") & HEAVY


def test_the_program_alone_loads_no_command() -> None:
    ours = {name for name in loaded("noetl.cli.main") if name.startswith("noetl.")}
    assert not {name for name in ours if name.startswith(("noetl.bootstrap", "noetl.dsl"))}

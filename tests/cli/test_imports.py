"""What a command does not use, it does not load: `noetl run` answers within a second."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = {"aiohttp", "asyncpg", "duckdb", "nats", "obstore", "prometheus_client", "rich"}
HEAVY |= {"numpy", "opentelemetry", "pandas", "py4j", "pyarrow", "pyspark", "starlette", "uvicorn"}

HELLO = Path(__file__).parents[2] / "examples" / "hello.yaml"
OBSERVED = """
import json, sys
started = []
def hear(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        started.append(str(arguments[0]))
sys.addaudithook(hear)
from noetl.cli.main import main
try:
    main()
finally:
    print(json.dumps({"modules": list(sys.modules), "started": started}))
"""


def loaded(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def observed(folder: Path, *arguments: str, **settings: str) -> Any:
    """What the whole command loaded and started, seen from inside."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NOETL_")}
    done = subprocess.run(
        [sys.executable, "-c", OBSERVED, *arguments],
        cwd=folder,
        env={**clean, "NOETL_HOME": str(folder / "home"), **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("command", ["run", "executions", "steering", "watch", "dev", "worker"])
def test_a_command_loads_nothing_heavy_before_it_needs_it(command: str) -> None:
    assert not loaded("noetl.cli.main", f"noetl.cli.{command}") & HEAVY


def test_the_program_alone_loads_no_command() -> None:
    ours = {name for name in loaded("noetl.cli.main") if name.startswith("noetl.")}
    assert not {name for name in ours if name.startswith(("noetl.bootstrap", "noetl.dsl"))}


def test_a_small_run_loads_nothing_heavy_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    seen = observed(tmp_path, "run", str(HELLO))
    assert not set(seen["modules"]) & HEAVY
    clients = {name for name in seen["modules"] if name.startswith(("noetl.client", "noetl.api"))}
    assert not clients


def test_a_small_run_starts_no_program_but_the_one_for_its_code(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"  # one that has to be started to say its version
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21\"' >&2\n")
    java.chmod(0o755)
    seen = observed(tmp_path, "run", str(HELLO), NOETL_JAVA_HOME=str(tmp_path / "java"))
    assert len(seen["started"]) <= 1
    assert not [program for program in seen["started"] if "java" in program]

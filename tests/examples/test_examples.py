"""Every playbook in examples/ runs as its first lines say, from the command line."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.pages_api import serve

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def pages_api() -> Iterator[str]:
    server = serve()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(folder: Path, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """The object that `noetl run --json` prints; relative paths are those of `folder`."""
    command = [str(Path(sys.executable).with_name("noetl")), "run", *arguments, "--json"]
    environment = {**os.environ, "NOETL_HOME": str(folder / "home")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == exit_code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_hello(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/hello.yaml", "--set", "name=Ada")
    assert answer["status"] == "COMPLETED"
    assert answer["result"] == {"greeting": "Hello, Ada!"}


@pytest.mark.parametrize(("amount", "approved_by"), [(120, "the rules"), (250, "a person")])
def test_branching(tmp_path: Path, amount: int, approved_by: str) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/branching.yaml", "--set", f"amount={amount}")
    assert answer["result"] == {"total": amount * 1.2, "approved_by": approved_by}


@pytest.mark.parametrize("way", ["back_edge", "loop"])
def test_pagination(tmp_path: Path, pages_api: str, way: str) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/pagination_{way}.yaml", "--set", f"api={pages_api}")
    assert answer["result"] == {"pages": 6, "rows": 57}


def test_pagination_by_a_jump(tmp_path: Path, pages_api: str) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/pagination_jump.yaml", "--set", f"api={pages_api}")
    assert answer["result"] == {"rows": 57}


def test_parallel_loop(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/parallel_loop.yaml", "--set", "items=1000")
    assert answer["result"] == {"rows": 1000, "sum": 333833500}
    assert answer["events"] < 100


def test_sub_playbook(tmp_path: Path) -> None:
    child = f"{EXAMPLES}/sub_playbook_child.yaml"
    answer = run(tmp_path, f"{EXAMPLES}/sub_playbook.yaml", "--with", child)
    assert answer["result"] == {"letters": 7, "all": {"Ada": 3, "Grace": 5, "Edsger": 6}}


def test_error_handling(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/error_handling.yaml")
    assert answer["result"] == {"tries": 3, "repaired": "the file has no header"}


def test_error_handling_that_fails(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/error_handling.yaml", "--set", "broken=true", exit_code=1)
    assert answer["status"] == "FAILED"
    assert answer["result"] is None
    assert "asked to be broken" in answer["error"]["message"]


def test_database(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/database.yaml")
    assert answer["result"]["rows"] == [
        {"customer": "Ada", "total": 165},
        {"customer": "Grace", "total": 80},
    ]
    assert (tmp_path / "orders.db").is_file()


def test_files_with_duckdb(tmp_path: Path) -> None:
    answer = run(tmp_path, f"{EXAMPLES}/files_duckdb.yaml")
    assert answer["result"]["rows"] == [
        {"shop": "north", "days": 30, "amount": 930},
        {"shop": "south", "days": 30, "amount": 1395},
    ]
    assert (tmp_path / "large.parquet").is_file()


def test_every_example_is_run_here() -> None:
    here = Path(__file__).read_text()
    named = {path.stem for path in EXAMPLES.glob("*.yaml")} - {"pagination_back_edge"}
    named -= {"pagination_loop"}  # by their way
    assert not [name for name in named if f"{name}.yaml" not in here]

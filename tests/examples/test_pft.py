"""The PFT playbooks harvest everything that the API holds, and nothing twice."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.credential import NewCredential
from noetl.runtime.starting import StartRequest
from noetl.servers.postgres import login_of
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.examples.test_examples import EXAMPLES, run

PFT = EXAMPLES / "pft"
PATIENTS = 20
DOMAIN_ROWS = 5 * PATIENTS
MDS_DETAILS = 428
PAGES = 204
LISTS = 2
"""Requests that no row makes: the patients of the facility, and what a harvest must hold."""
RUN_SECONDS_MAX = 120.0


@contextmanager
def api(*options: str) -> Iterator[str]:
    command = [sys.executable, str(PFT / "api_server.py"), "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().removeprefix("listening on ").strip()
        server.kill()


@pytest.fixture(scope="module")
def pft_api() -> Iterator[str]:
    with api() as address:
        yield address


def test_pft_on_sqlite(tmp_path: Path, pft_api: str) -> None:
    answer = run(tmp_path, f"{PFT}/pft_sqlite.yaml", "--set", f"api={pft_api}")
    assert answer["status"] == "COMPLETED"
    assert answer["result"] == {"status": "ok", "rows": DOMAIN_ROWS + MDS_DETAILS, "wrong": []}


def test_pft_page_by_page(tmp_path: Path, pft_api: str) -> None:
    answer = run(
        tmp_path,
        f"{PFT}/pft_continuation.yaml",
        *("--set", f"api={pft_api}", "--set", "database=pages.db"),
    )
    assert answer["status"] == "COMPLETED"
    assert (answer["result"]["pages"], answer["result"]["wrong"]) == (PAGES, [])
    with sqlite3.connect(tmp_path / "pages.db") as database:
        (last,) = database.execute("SELECT max(page) FROM pft_pages").fetchone()
    assert last == 4  # no first page knows of it


@pytest.mark.parametrize(
    ("playbook", "requests"),
    [("pft_sqlite", PAGES + MDS_DETAILS), ("pft_continuation", PAGES)],
)
def test_an_api_that_refuses_requests_costs_tries_and_no_rows(
    tmp_path: Path, playbook: str, requests: int
) -> None:
    """Every answer came once: what was asked more often is what was refused."""
    with api("--faults", "20") as address:
        answer = run(tmp_path, f"{PFT}/{playbook}.yaml", "--set", f"api={address}")
        with urllib.request.urlopen(f"{address}/faults") as told:
            counted = json.load(told)
    assert (answer["result"]["status"], answer["result"]["wrong"]) == ("ok", [])
    assert counted["refused"] >= requests // 20
    assert counted["asked"] - counted["refused"] == requests + LISTS


def test_a_harvest_that_lacks_something_fails_and_says_what(tmp_path: Path, pft_api: str) -> None:
    saved = "UPDATE pft_mds_work SET status = 'done' WHERE id = :id;"
    lost = "DELETE FROM pft_records WHERE patient_id = 100007 AND data_type = 'conditions';"
    text = (PFT / "pft_sqlite.yaml").read_text().replace(saved, f"{saved} {lost}")
    (tmp_path / "lossy.yaml").write_text(text)
    answer = run(tmp_path, "lossy.yaml", "--set", f"api={pft_api}", exit_code=1)
    assert "'conditions', 'patients': 19" in answer["error"]["message"]


def test_the_size_of_a_run_is_what_was_asked_for(tmp_path: Path, pft_api: str) -> None:
    sizes = ("--set", "num_facilities=2", "--set", "patients_per_facility=3")
    answer = run(tmp_path, f"{PFT}/pft_continuation.yaml", "--set", f"api={pft_api}", *sizes)
    assert answer["result"]["wrong"] == []
    assert answer["result"]["pages"] < PAGES


@pytest.mark.servers
def test_pft_on_postgres(tmp_path: Path, pft_api: str, postgres_dsn: str) -> None:
    assert asyncio.run(_on_postgres(tmp_path, pft_api, postgres_dsn)) == {
        "status": "ok",
        "rows": DOMAIN_ROWS + MDS_DETAILS,
        "wrong": [],
    }


async def _on_postgres(home: Path, api: str, dsn: str) -> object:
    async with open_engine(Settings(home=str(home), stage_engine="local")) as engine:
        scope = engine.settings.scope
        credential = NewCredential(name="pft_postgres", type="postgres", data=login_of(dsn))
        await engine.platform.credentials.put(scope, credential)
        text = (PFT / "pft_postgres.yaml").read_text()
        path = (await engine.playbooks.register(scope, text)).entry.path
        request = StartRequest(scope=scope, path=path, payload={"api": api})
        execution = await engine.starter.start(request)
        ending = await engine.coordinator.ending(execution, RUN_SECONDS_MAX)
        assert ending is not None
        assert ending.status == "COMPLETED", ending.error
        assert ending.result is not None
        return plain_result(value_of(ending.result))

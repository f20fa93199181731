"""`noetl results`, as a person uses it on a finished run."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc

from noetl.domain.naming.placement import CellPlacement, physical_key
from noetl.domain.naming.result_name import parse_result_name
from tests.cli.shells import HEAD, Shell

ROWS = f"""{HEAD}metadata: {{name: rows, path: results/rows}}
workflow:
  - step: table
    tool:
      kind: python
      effects: none
      code: |
        result = [{{"n": n, "name": f"row number {{n}}"}} for n in range(5000)]
    next: text
  - step: text
    tool: {{kind: python, code: "result = 'told ' * 40000"}}
"""


PIPED = f"""{HEAD}metadata: {{name: piped, path: results/piped}}
workflow:
  - step: piped
    tool:
      - {{name: rows, kind: duckdb, query: "SELECT range AS id, range AS same FROM range(600000)"}}
      - name: counted
        kind: python
        tables: arrow
        input: {{rows: "{{{{ rows.rows }}}}"}}
        code: "result = rows.num_rows"
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("results"))
    shell.environment |= {"NOETL_RESULT_SHARED_MEMORY_MB": "0", "NOETL_RESULT_DISK_MB": "0"}
    return shell


@pytest.fixture(scope="module")
def execution(shell: Shell) -> str:
    told = shell.json("run", shell.write("rows.yaml", ROWS), "--quiet")
    assert told["status"] == "COMPLETED", told
    return str(told["execution_id"])


@pytest.fixture(scope="module")
def table(execution: str) -> str:
    return f"noetl://default/default/results/{execution}/table/0/0/1@1"


def stored(shell: Shell, step: str) -> Path:
    found = (shell.folder / ".noetl").glob(f"payloads/noetl/**/results/{step}/0/0/*")
    (path,) = [each for each in found if each.suffix != ".call"]
    return path


def test_list_names_what_lies_outside_the_log(shell: Shell, execution: str, table: str) -> None:
    lines = shell.noetl("results", "list", execution, "--json").stdout.splitlines()
    found = {facts["uri"]: facts for facts in map(json.loads, lines)}
    assert len(found) == 3  # the playbook, a table and a text
    assert found[table]["row_count"] == 5000
    assert table in shell.noetl("results", "list", execution).stdout


def test_a_table_that_only_its_pipeline_names_is_listed_and_stays(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    execution = shell.json("run", shell.write("piped.yaml", PIPED), "--quiet")["execution_id"]
    piped = f"noetl://default/default/results/{execution}/piped%3Arows/0/0/1@1"
    lines = shell.noetl("results", "list", execution, "--json").stdout.splitlines()
    assert {facts["uri"]: facts["row_count"] for facts in map(json.loads, lines)}[piped] == 600_000

    collected = shell.json("results", "gc", "--grace", "0s", "--superseded", "--delete")
    assert (collected["objects"], collected["deleted"]) == ({"live": 3}, 0)
    assert shell.noetl("results", "verify", execution).returncode == 0
    assert shell.noetl("results", "show", piped).returncode == 0


def test_show_tells_facts_and_the_beginning(shell: Shell, table: str) -> None:
    facts = shell.json("results", "show", table)
    assert facts["stored_bytes"] == facts["byte_length"]
    assert facts["encoder"] == "noetl-feather/1"
    assert facts["place"] == str(stored(shell, "table"))
    assert facts["preview"]["value"][0] == {"n": 0, "name": "row number 0"}
    assert "next: noetl results get" in shell.noetl("results", "show", table).stderr


def test_get_writes_the_stored_bytes(shell: Shell, table: str) -> None:
    done = shell.noetl("results", "get", table, "--as", "arrow", "--output", "rows.feather")
    assert done.returncode == 0, done.stderr
    written = (shell.folder / "rows.feather").read_bytes()
    assert written == stored(shell, "table").read_bytes()
    assert ipc.open_file(pa.BufferReader(written)).read_all().num_rows == 5000


def test_get_gives_the_value_as_json(shell: Shell, execution: str, table: str) -> None:
    rows = json.loads(shell.noetl("results", "get", table, "--as", "json").stdout)
    assert rows[4999] == {"n": 4999, "name": "row number 4999"}
    text = table.replace("/table/", "/text/")
    assert json.loads(shell.noetl("results", "get", text, "--as", "json").stdout) == "told " * 40000


def test_a_small_result_is_got_from_its_event(shell: Shell) -> None:
    small = f"{HEAD}metadata: {{name: small, path: results/small}}\n"
    small += "workflow: [{step: one, tool: {kind: python, code: 'result = {\"n\": 1}'}}]\n"
    told = shell.json("run", shell.write("small.yaml", small), "--quiet")
    uri = f"noetl://default/default/results/{told['execution_id']}/one/0/0/1@1"

    assert json.loads(shell.noetl("results", "get", uri).stdout) == {"n": 1}
    facts = shell.json("results", "show", uri)
    assert (facts["place"], facts["preview"]) == ("in its event", {"n": 1})
    refused = shell.noetl("results", "get", uri, "--as", "arrow")
    assert (refused.returncode, "use --as json" in refused.stderr) == (2, True)


def test_names_that_lead_nowhere_are_said_so(shell: Shell, execution: str, table: str) -> None:
    for uri, code, exit_code in (
        ("noetl://nonsense", "name_invalid", 1),
        (table.replace("/table/", "/other/"), "request_invalid: no event", 2),
        (table.replace("//default/", "//stranger/"), "request_invalid: no event", 2),
        (table.replace(execution, "12345"), "execution_not_found", 1),
    ):
        for command in ("show", "get"):
            done = shell.noetl("results", command, uri)
            assert (done.returncode, done.stdout) == (exit_code, ""), done.stderr
            assert done.stderr.startswith(code), done.stderr
    text = table.replace("/table/", "/text/")
    refused = shell.noetl("results", "get", text, "--as", "arrow")
    assert (refused.returncode, "use --as json" in refused.stderr) == (2, True)


def test_verify_finds_and_repairs(shell: Shell, execution: str, table: str) -> None:
    sound = shell.noetl("results", "verify", execution)
    assert (sound.returncode, "3 whole" in sound.stdout) == (0, True), sound

    path = stored(shell, "table")
    before = path.read_bytes()
    path.unlink()
    missing = shell.noetl("results", "verify", execution)
    assert (missing.returncode, f"missing   {table}" in missing.stdout) == (1, True), missing
    absent = shell.noetl("results", "get", table, "--output", "never")
    assert (absent.returncode, absent.stderr.startswith("payload_missing")) == (1, True), absent
    assert f"noetl results verify {execution} --repair" in absent.stderr
    assert not (shell.folder / "never").exists()

    repaired = shell.noetl("results", "verify", execution, "--repair")
    assert (repaired.returncode, f"repaired  {table}" in repaired.stdout) == (0, True), repaired
    assert path.read_bytes() == before


def test_what_cannot_be_repaired_fails_the_command(shell: Shell, execution: str) -> None:
    path = stored(shell, "text")
    before = path.read_bytes()
    path.write_bytes(before[:-1] + b"!")
    uri = f"noetl://default/default/results/{execution}/text/0/0/1@1"

    wrong = shell.noetl("results", "get", uri, "--output", "never")
    assert wrong.stderr.startswith("payload_corrupt")
    assert not (shell.folder / "never").exists()
    done = shell.noetl("results", "verify", "--all", "--repair")
    path.write_bytes(before)

    assert done.returncode == 1
    assert f"cannot    {uri}  (corrupt): its pipeline has effects" in done.stdout


def test_verify_wants_executions_or_all_of_them(shell: Shell, execution: str) -> None:
    for arguments in ([], [execution, "--all"]):
        done = shell.noetl("results", "verify", *arguments)
        assert (done.returncode, "--all" in done.stderr) == (2, True), done.stderr


def test_gc_lists_first_and_deletes_when_told_to(shell: Shell, execution: str) -> None:
    gone = str(int(execution) - (3 * 86_400_000 << 22))
    place = stored(shell, "table")
    live = shell.json("results", "gc", "--grace", "0s")
    assert live["objects"] == {"live": 3}
    assert "there is nothing to delete" in shell.noetl("results", "gc").stderr

    orphan = _orphan(shell, gone)
    listed = shell.noetl("results", "gc")
    assert ("orphan" in listed.stdout, orphan.exists()) == (True, True)
    assert "next: noetl results gc --delete" in listed.stderr

    deleted = shell.json("results", "gc", "--delete")
    assert (deleted["deleted"], deleted["live_candidates"]) == (1, 0)
    assert (orphan.exists(), place.exists()) == (False, True)
    refused = shell.noetl("results", "gc", "--grace", "soon")
    assert refused.returncode == 2


def _orphan(shell: Shell, execution: str) -> Path:
    name = parse_result_name(f"noetl://default/default/results/{execution}/load/0/0/1@1")
    key = physical_key(name, CellPlacement("dev", "local", "local"), "json")
    path = shell.folder / ".noetl" / "payloads" / key
    path.parent.mkdir(parents=True)
    path.write_bytes(b"left over")
    return path

"""The page about results: its numbers, its addresses and its requests are those of the program."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.cache.memory import MemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.api.app import ROUTES
from noetl.bootstrap.cells import cell_registry
from noetl.bootstrap.results import open_shared_memory
from noetl.bootstrap.settings import Settings, load_settings
from noetl.domain.naming.result_name import parse_results
from noetl.ports.result_cache import ResultCache
from noetl.results.counts import ENCODINGS, OUTCOMES
from noetl.results.filling import OUTCOMES as FILLED
from noetl.results.numbers import of_reading_and_writing, of_the_server
from noetl.results.read_chain import ReadChain
from tests.memory_results import memory_results

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/results.md").read_text()


def test_every_number_and_every_outcome_is_on_the_page(tmp_path: Path) -> None:
    results = memory_results()
    layers: list[ResultCache] = [
        MemoryResultCache(),
        open_shared_memory(Settings(home=str(tmp_path))),
        DiskResultCache(tmp_path / "cache", utc_now),
    ]
    results.chain = ReadChain(layers, results.objects, tmp_path)
    names = {each.name for each in (*of_reading_and_writing(results), *of_the_server(results))}
    assert len(names) > 20
    assert sorted(name for name in names if f"`{name}" not in PAGE) == []
    outcomes = {*ENCODINGS, *OUTCOMES, *FILLED} - {"other"}
    assert sorted(each for each in outcomes if f"`{each}`" not in PAGE) == []


def test_every_request_of_the_page_has_a_route_and_a_name() -> None:
    requests = re.findall(r"^curl '([^']+)'", PAGE, re.MULTILINE)
    assert len(requests) == 2
    for request in requests:
        parts = urlsplit(request)
        (route,) = [each for each in ROUTES if each.path == parts.path]
        ((field, (uri,)),) = parse_qs(parts.query).items()
        assert field in route.query.__struct_fields__
        parse_results(uri)


def test_the_registry_of_the_page_is_one() -> None:
    (given,) = re.findall(r"^NOETL_RESULT_CELLS='(.*?)'$", PAGE, re.MULTILINE | re.DOTALL)
    settings = load_settings({"NOETL_RESULT_CELLS": given, "NOETL_RESULT_READ_REGION": "us-1"})
    (cell,) = cell_registry(settings).cells
    assert json.loads(msgspec.json.encode(cell)) == json.loads(given)["cells"][0]


def test_the_settings_of_the_page_are_settings() -> None:
    known = {f"NOETL_{name.upper()}" for name in Settings.__struct_fields__}
    assert set(re.findall(r"NOETL_[A-Z_]+", PAGE)) <= known

"""Names that are longer than a part of a key lie where the first build that could store them put
them; such keys do not tell whose they are, so nobody takes one for garbage."""

from pathlib import Path

import msgspec
import pytest

from noetl.domain.naming.placement import (
    CellPlacement,
    dataset_key,
    parse_physical_key,
    physical_key,
)
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.ports.object_store import is_key
from scripts.golden_corpus.files import GOLDEN, read_json

FILES = [
    pytest.param(path, id=path.parent.name)
    for path in sorted(GOLDEN.glob("v[0-9]*/long_names.json"))
]
pytestmark = pytest.mark.parametrize("path", FILES)


def test_results_have_the_same_keys(path: Path) -> None:
    for vector in read_json(path)["results"]:
        name = msgspec.convert(vector["name"], ResultName)
        placement = msgspec.convert(vector["placement"], CellPlacement)
        assert physical_key(name, placement, vector["extension"]) == vector["key"]
        assert parse_results(name.uri) == name


def test_datasets_have_the_same_keys(path: Path) -> None:
    for vector in read_json(path)["datasets"]:
        name = msgspec.convert(vector["name"], DatasetName)
        placement = msgspec.convert(vector["placement"], CellPlacement)
        assert dataset_key(name, placement) == vector["key"]


def test_every_store_takes_them_and_a_shortened_one_is_foreign_to_whoever_lists(path: Path) -> None:
    vectors = read_json(path)
    keys = [vector["key"] for vector in (*vectors["results"], *vectors["datasets"])]
    assert all(is_key(key) for key in keys)
    read = [parse_physical_key(key) for key in keys]
    assert [found is None for found in read] == [
        "=" in key.partition("/results/")[2] for key in keys
    ]
    assert sum(found is not None for found in read) == 1

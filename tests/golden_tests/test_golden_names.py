"""Names, shards, keys and subjects are what other languages and stored objects were told they are.

A key that moves is an object that is lost: what was written under it is not found again.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.domain.naming.fnv import fnv1a64
from noetl.domain.naming.locator import (
    LegacyResultName,
    LogicalName,
    Name,
    ResourceLocator,
    parse,
)
from noetl.domain.naming.placement import (
    CellPlacement,
    dataset_key,
    execution_prefix,
    parse_physical_key,
    physical_key,
    shard_of,
)
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.domain.naming.subjects import from_nats_subject, jetstream_domain, to_nats_subject
from noetl.kernel.errors import NameInvalid
from scripts.golden_corpus.files import GOLDEN, read_json

FILES = [
    pytest.param(path, id=path.parent.name) for path in sorted(GOLDEN.glob("v[0-9]*/names.json"))
]
pytestmark = pytest.mark.parametrize("path", FILES)


def check_name(name: Name, vector: Any) -> None:
    assert name.uri == vector["uri"]
    assert parse(vector["uri"]) == name
    assert to_nats_subject(name) == vector["subject"]
    assert from_nats_subject(vector["subject"]) == name


def check_place(name: ResultName | DatasetName, vector: Any) -> CellPlacement:
    placement = msgspec.convert(vector["placement"], CellPlacement)
    execution = name.execution_id
    shard = shard_of(name.tenant, name.project, execution, placement.shard_count)
    assert shard == vector["shard"]
    assert execution_prefix(name.scope, execution, placement) == vector["execution_prefix"]
    found = parse_physical_key(vector["key"])
    assert found is not None
    assert (found.name, found.shard) == (name, shard)
    assert (found.env, found.region, found.cell) == (
        placement.env,
        placement.region,
        placement.cell,
    )
    return placement


def test_the_hash_is_the_same_number(path: Path) -> None:
    for vector in read_json(path)["fnv1a64"]:
        assert f"{fnv1a64(vector['text'].encode()):016x}" == vector["hash"]


def test_results_have_the_same_names_shards_and_keys(path: Path) -> None:
    for vector in read_json(path)["results"]:
        name = msgspec.convert(vector["name"], ResultName)
        assert parse_results(vector["uri"]) == name
        assert name.uri == vector["uri"]
        check_name(parse(name.uri), vector)
        placement = check_place(name, vector)
        assert physical_key(name, placement, vector["extension"]) == vector["key"]


def test_datasets_have_the_same_names_shards_and_keys(path: Path) -> None:
    for vector in read_json(path)["datasets"]:
        name = msgspec.convert(vector["name"], DatasetName)
        assert parse_results(vector["uri"]) == name
        assert name.uri == vector["uri"]
        check_name(parse(name.uri), vector)
        assert dataset_key(name, check_place(name, vector)) == vector["key"]


def test_every_shape_of_name_has_the_same_text_and_subject(path: Path) -> None:
    vectors = read_json(path)
    for vector in vectors["resources"]:
        pairs = tuple((kind, name) for kind, name in vector["pairs"])
        check_name(ResourceLocator(pairs), vector)
    for vector in vectors["logical"]:
        check_name(msgspec.convert(vector, LogicalName), vector)
    for vector in vectors["legacy"]:
        check_name(msgspec.convert(vector, LegacyResultName), vector)


def test_what_was_read_is_still_read(path: Path) -> None:
    for vector in read_json(path)["accepted"]:
        assert parse(vector["input"]).uri == vector["uri"]
        assert parse_results(vector["input"]).uri == vector["result_uri"]


def test_what_was_refused_is_still_refused(path: Path) -> None:
    vectors = read_json(path)
    for uri in vectors["refused"]:
        with pytest.raises(NameInvalid):
            parse(uri)
    assert [key for key in vectors["foreign_keys"] if parse_physical_key(key)] == []


def test_places_have_the_same_domains(path: Path) -> None:
    for vector in read_json(path)["domains"]:
        name = parse(vector["uri"])
        assert isinstance(name, ResourceLocator)
        assert jetstream_domain(name) == vector["domain"]

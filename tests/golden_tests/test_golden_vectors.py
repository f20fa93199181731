"""Ids, canonical bytes and registry digests are what other languages were told they are."""

import json
from pathlib import Path

import pytest

from noetl.kernel import canonical_json, snowflake
from noetl.kernel.errors import NoETLError
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import Upcaster, UpcasterRegistry
from scripts.golden_corpus.files import corpora, read_json

FROZEN = [corpus for corpus in corpora() if (corpus / "canonical_json.json").exists()]
CORPORA = [pytest.param(corpus, id=corpus.name) for corpus in FROZEN]


@pytest.mark.parametrize("corpus", CORPORA)
def test_canonical_json_is_the_same_bytes(corpus: Path) -> None:
    vectors = read_json(corpus / "canonical_json.json")

    assert vectors["form"] == canonical_json.FORM
    for vector in vectors["values"]:
        encoded = canonical_json.encode(json.loads(vector["input"]))
        assert encoded.decode() == vector["canonical"]
        assert canonical_json.sha256_hex(encoded) == vector["sha256"]
        assert canonical_json.encode(json.loads(encoded)) == encoded


@pytest.mark.parametrize("corpus", CORPORA)
def test_what_canonical_json_refuses_it_still_refuses(corpus: Path) -> None:
    for vector in read_json(corpus / "canonical_json.json")["refused"]:
        with pytest.raises(NoETLError) as raised:
            canonical_json.encode(json.loads(vector["input"]))
        assert raised.value.code == vector["code"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_snowflakes_are_made_of_the_same_bits(corpus: Path) -> None:
    vectors = read_json(corpus / "snowflakes.json")

    assert vectors["epoch_millis"] == snowflake.EPOCH_MILLIS
    for vector in vectors["composed"]:
        parts = snowflake.Parts(vector["epoch_millis"], vector["node"], vector["sequence"])
        assert snowflake.compose(parts) == vector["id"]
        assert snowflake.decompose(vector["id"]) == parts
        assert snowflake.minted_at(vector["id"]) == vector["minted_at"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_node_takes_the_same_snowflakes_in_turn(corpus: Path) -> None:
    turn = read_json(corpus / "snowflakes.json")["taken_in_turn"]
    ids = snowflake.SnowflakeSequence(turn["node"])

    for reading in turn["readings"]:
        taken = [ids.next(reading["now_millis"]) for _ in range(reading["count"])]
        assert (taken[0], taken[-1]) == (reading["first"], reading["last"])


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_registry_has_the_same_digest(corpus: Path) -> None:
    for vector in read_json(corpus / "upcaster_registry.json")["registries"]:
        registry = UpcasterRegistry(
            Upcaster(name, version, version + 1, lambda body: body)
            for name, version in vector["transitions"]
        )
        assert registry.digest == vector["digest"]


def test_the_upcasters_of_this_build_are_frozen() -> None:
    released = {read_json(corpus / "upcaster_registry.json")["released"] for corpus in FROZEN}

    assert RELEASED.digest in released, "upcasters were added: run python -m scripts.golden"

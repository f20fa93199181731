"""Headers of regions: what any language reads, and what is refused before anybody attaches."""

import hashlib
from typing import Any

import pytest

from noetl.adapters.cache import region as regions
from noetl.adapters.cache.region import HEADER, Producer, Region, unpack
from noetl.kernel.instant import Instant
from noetl.ports.result_cache import CacheKey
from scripts.golden_corpus.files import GOLDEN, read_json

VECTORS: list[dict[str, Any]] = read_json(GOLDEN / "v0.3" / "ipc_header.json")["headers"]


def described(fields: dict[str, Any]) -> Region:
    key = CacheKey(
        tenant_id=fields["tenant_id"],
        organization_id=fields["organization_id"],
        execution_id=fields["execution_id"],
        sha256=fields["sha256"],
        byte_length=fields["byte_length"],
    )
    rows, schema = fields["row_count"], fields["schema_digest"]
    return Region(
        sha256=bytes.fromhex(key.sha256),
        scope=regions.scope_digest(key),
        byte_length=key.byte_length,
        lease_micros=regions.micros(Instant(fields["lease_expires_at"])),
        valid_micros=regions.micros(Instant(fields["valid_until"])),
        producer=Producer(fields["pid"], fields["start_ticks"], bytes.fromhex(fields["place"])),
        node=regions.node_digest(fields["node_id"]),
        rows=regions.ROWS_UNKNOWN if rows is None else rows,
        schema=regions.NO_SCHEMA if schema is None else regions.text_digest(schema),
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_header_is_the_same_bytes_in_every_build(vector: dict[str, Any]) -> None:
    region = described(vector["fields"])

    assert region.pack().hex() == vector["header"]
    assert unpack(bytes.fromhex(vector["header"])) == region
    assert region.data_offset == len(region.pack()) == vector["data_offset"]


def test_the_payload_begins_at_a_multiple_of_64() -> None:
    assert HEADER.size % regions.ALIGNMENT == 0


@pytest.mark.parametrize(
    ("start", "replacement", "reason"),
    [
        (0, b"NOETLIPX", "magic"),
        (0, b"ARROW1\0\0", "magic"),
        (8, b"\2", "version"),
        (12, b"\0\0\0\0", "length"),
        (12, b"\xc8\0\0\0", "length"),
    ],
)
def test_a_header_of_something_else_is_refused(start: int, replacement: bytes, reason: str) -> None:
    header = bytearray.fromhex(VECTORS[0]["header"])
    header[start : start + len(replacement)] = replacement

    assert unpack(bytes(header)) == reason


def test_a_header_that_was_cut_short_is_refused() -> None:
    header = bytes.fromhex(VECTORS[0]["header"])

    assert {unpack(header[:size]) for size in range(HEADER.size)} == {"length"}


def test_scopes_that_run_together_differ() -> None:
    def digest(*names: str) -> bytes:
        tenant, organization, execution = names
        sha256 = hashlib.sha256(b"").hexdigest()
        return regions.scope_digest(
            CacheKey(
                tenant_id=tenant,
                organization_id=organization,
                execution_id=execution,
                sha256=sha256,
                byte_length=0,
            )
        )

    assert len({digest("a", "bc", "1"), digest("ab", "c", "1"), digest("a", "b", "c1")}) == 3

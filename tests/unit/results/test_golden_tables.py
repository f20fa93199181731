"""Tables that earlier builds wrote: every build reads them, and with the same Arrow writes them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from noetl.kernel import canonical_json
from noetl.results import feather
from noetl.results.feather import encode_table, schema_digest
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import find_table

FILE = Path(__file__).resolve().parents[2] / "golden" / "v0.3" / "feather.json"
GOLDEN = json.loads(FILE.read_text(encoding="ascii"))


@pytest.mark.parametrize("vector", GOLDEN["tables"], ids=lambda vector: vector["name"])
def test_a_golden_table_is_read_as_the_content_it_was(vector: dict[str, Any]) -> None:
    data = base64.b64decode(vector["feather"])

    with StoredTable(data) as stored:
        assert canonical_json.encode(stored.whole()).decode() == vector["content"]
        assert stored.length == vector["row_count"]
        assert schema_digest(stored.schema) == vector["schema_digest"]
    assert canonical_json.sha256_hex(data) == vector["sha256"]


@pytest.mark.skipif(
    (feather.ARROW_VERSION, feather.ENCODER) != (GOLDEN["pyarrow"], GOLDEN["encoder"]),
    reason="another Arrow, or another encoder of ours, may write other bytes",
)
@pytest.mark.parametrize("vector", GOLDEN["tables"], ids=lambda vector: vector["name"])
def test_a_golden_content_is_written_as_the_bytes_it_was(vector: dict[str, Any]) -> None:
    content = json.loads(vector["content"])
    table = find_table(content)
    assert table is not None

    encoded = encode_table(content, table)

    assert canonical_json.sha256_hex(encoded.data) == vector["sha256"]
    assert encoded.schema_digest == vector["schema_digest"]

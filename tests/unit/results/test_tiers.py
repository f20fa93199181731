"""Where a result is kept depends on its size and its form alone."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from noetl.kernel import canonical_json
from noetl.kernel.errors import NotFinite
from noetl.results.feather import ENCODER
from noetl.results.tabular import TablePath
from noetl.results.tiers import (
    FEATHER_MEDIA_TYPE,
    INLINE_BYTES_MAX,
    JSON_MEDIA_TYPE,
    SHELL_BYTES_MAX,
    Feather,
    Inline,
    Json,
    decide_tier,
    encode,
)

ROWS = [{"id": number, "name": f"name {number}"} for number in range(1_200)]


def text_of(byte_length: int) -> dict[str, Any]:
    return {"value": "x" * (byte_length - len('{"value":""}'))}


def test_up_to_the_budget_a_result_stays_in_its_event() -> None:
    assert INLINE_BYTES_MAX == 102_400
    within, above = text_of(INLINE_BYTES_MAX), text_of(INLINE_BYTES_MAX + 1)

    assert decide_tier(within) == Inline(canonical_json.encode(within))
    assert decide_tier(above) == Json(canonical_json.encode(above))


def test_a_table_above_the_budget_is_feather_and_below_it_is_not() -> None:
    content = {"value": ROWS}
    size = len(canonical_json.encode(content))

    assert isinstance(decide_tier(content, size), Inline)
    assert decide_tier(content, size - 1) == Feather(TablePath(("value",)))
    assert decide_tier(content, 1_000) == Feather(TablePath(("value",)))


def test_a_few_records_beside_a_long_text_are_not_a_table() -> None:
    beside = {"value": {"rows": ROWS[:2], "text": "x" * INLINE_BYTES_MAX}}
    around = {"value": {"rows": ROWS, "text": "x" * 1_000}}
    many = {"value": {name: [{**row, name: 1} for row in ROWS] for name in "abc"}}

    assert isinstance(decide_tier(beside), Json)
    assert isinstance(decide_tier(around, 1_000), Feather)
    assert isinstance(decide_tier(many, 1_000), Json)


@pytest.mark.parametrize("inline_bytes_max", [0, INLINE_BYTES_MAX])
def test_what_names_stored_tables_is_json_whatever_lists_are_left_in_it(
    inline_bytes_max: int,
) -> None:
    columns = [{"name": "id", "type": "int64"}, {"name": "half", "type": "double"}]
    content = {"stored": [{"at": ["value", "rows"]}], "value": {"columns": columns, "rows": None}}

    assert decide_tier(content, inline_bytes_max) == Json(canonical_json.encode(content))
    large = {"stored": [], "value": ROWS}
    assert encode(large, inline_bytes_max).media_type == JSON_MEDIA_TYPE


def test_what_stands_around_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"value": {"rows": ROWS, "text": "x" * 1_000}}
    assert SHELL_BYTES_MAX > INLINE_BYTES_MAX

    monkeypatch.setattr("noetl.results.tiers.SHELL_BYTES_MAX", 1_000)

    assert isinstance(decide_tier(content, 1_000), Json)


def test_an_encoded_table_says_what_its_reference_records() -> None:
    encoded = encode({"value": ROWS}, 1_000)

    assert encoded.data.startswith(b"ARROW1")
    assert encoded[:2] == ("feather", FEATHER_MEDIA_TYPE)
    assert (encoded.row_count, encoded.encoder) == (1_200, ENCODER)
    assert encoded.arrow_version == pa.__version__
    assert encoded.schema_digest is not None
    assert len(encoded.schema_digest) == 64


def test_an_encoded_document_is_its_canonical_json() -> None:
    content = {"value": {"b": [1], "a": None}}
    inline, json = encode(content), encode(content, 1)

    assert inline.data == json.data == b'{"value":{"a":null,"b":[1]}}'
    assert (inline.tier, json.tier) == ("inline", "json")
    assert inline.media_type == json.media_type == JSON_MEDIA_TYPE
    assert inline.encoder == json.encoder == "noetl-json/c1"
    assert (json.row_count, json.schema_digest, json.arrow_version) == (None, None, None)


@pytest.mark.parametrize("inline_bytes_max", [100, 10**9])
def test_what_is_not_finite_is_refused_in_every_tier(inline_bytes_max: int) -> None:
    for value in ([*ROWS, {"id": 0, "name": float("nan")}], [1, float("inf")]):
        with pytest.raises(NotFinite):
            encode({"value": value}, inline_bytes_max)


def test_arrow_is_loaded_with_the_first_table() -> None:
    code = (
        "import sys; from noetl.results import reading, tiers\n"
        "tiers.encode({'value': 'x' * 200_000}); assert 'pyarrow' not in sys.modules\n"
        "tiers.encode({'value': [{'x': 1}] * 99_999}); assert 'pyarrow' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

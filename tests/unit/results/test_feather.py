"""A table is written in one way: what the file says, and which types its columns get."""

from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from noetl.kernel.errors import NotFinite, ValueNotPlain
from noetl.results import columns
from noetl.results.feather import ENCODER, encode_table, schema_digest
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import TablePath

VALUE = TablePath(("value",))


def field_of(*values: Any) -> Any:
    schema = ipc.open_file(encode_table(rows_of(*values), VALUE).data).schema
    return schema.field("x")


def rows_of(*values: Any) -> dict[str, Any]:
    return {"value": [{"x": value} for value in values]}


def read_back(*values: Any) -> list[Any]:
    with StoredTable(encode_table(rows_of(*values), VALUE).data) as stored:
        return [row["x"] for row in stored.rows()]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((True, None), pa.bool_()),
        ((1, -(2**63), 2**63 - 1), pa.int64()),
        ((1.5, None), pa.float64()),
        (("", "ä\0😀"), pa.string()),
        ((None, None), pa.null()),
        (([1], [], None), pa.list_(pa.int64())),
        (([], []), pa.list_(pa.null())),
        (({"b": 1, "a": "x"}, {"a": None, "b": 2}), pa.struct({"a": pa.string(), "b": pa.int64()})),
        (([{"a": [1.5]}], [{"a": None}]), pa.list_(pa.struct({"a": pa.list_(pa.float64())}))),
    ],
)
def test_values_of_one_kind_have_a_type_of_arrow(values: tuple[Any, ...], kind: Any) -> None:
    field = field_of(*values)

    assert field.type == kind
    assert not columns.is_json(field)
    assert read_back(*values) == list(values)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((1, 1.0), ["1", "1.0"]),
        ((1, True, None), ["1", "true", None]),
        ((2**63, -1), ["9223372036854775808", "-1"]),
        (("a", 1), ['"a"', "1"]),
        (([1], [2.5]), ["[1]", "[2.5]"]),
        (({"a": 1}, {}), ['{"a":1}', "{}"]),
        (({"a": 2, "b": 1}, {"a": None}), ['{"a":2,"b":1}', '{"a":null}']),
        (("null", 0, None), ['"null"', "0", None]),
    ],
)
def test_mixed_values_are_json_text_and_marked_so(
    values: tuple[Any, ...], texts: list[str | None]
) -> None:
    stored = ipc.open_file(encode_table(rows_of(*values), VALUE).data).read_all()

    assert columns.is_json(stored.schema.field("x"))
    assert stored.column("x").to_pylist() == texts
    assert [repr(value) for value in read_back(*values)] == [repr(value) for value in values]


def test_values_nested_too_deeply_for_a_type_are_json() -> None:
    deep: Any = 1
    for _ in range(columns.DEPTH_MAX + 2):
        deep = [deep]

    assert columns.is_json(field_of(deep, deep))
    assert read_back(deep, deep) == [deep, deep]


def test_text_too_long_for_offsets_of_32_bits_has_longer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "TEXT_CHARS_MAX", 10)

    assert field_of("x" * 5, "y" * 5).type == pa.string()
    assert field_of("x" * 5, "y" * 6).type == pa.large_string()
    assert read_back(["x" * 5], ["y" * 6]) == [["x" * 5], ["y" * 6]]
    assert field_of("x" * 9, 1).type == pa.large_string()


def test_a_file_has_the_magic_of_arrow_files_and_metadata_of_our_own_only() -> None:
    content = {"value": {"rows": [{"b": 1, "a": 2}, {"a": 3, "b": 4}], "status": "ok"}}

    encoded = encode_table(content, TablePath(("value", "rows")))

    assert encoded.data[:6] == encoded.data[-6:] == b"ARROW1"
    assert encoded.row_count == 2
    schema = ipc.open_file(encoded.data).schema
    assert schema.names == ["a", "b"]
    assert schema.metadata == {
        b"noetl.encoder": ENCODER.encode(),
        b"noetl.shell": b'{"value":{"rows":null,"status":"ok"}}',
        b"noetl.table": b'["value","rows"]',
    }


def test_the_digest_of_a_schema_is_about_names_and_types() -> None:
    def digest(**types: Any) -> str:
        return schema_digest(pa.schema(types))

    schema = pa.schema({"a": pa.int64()})
    assert schema_digest(schema) == digest(a=pa.int64())
    assert schema_digest(schema.with_metadata({"noetl.shell": "{}"})) == schema_digest(schema)
    others = [
        digest(b=pa.int64()),
        digest(a=pa.float64()),
        digest(a=pa.list_(pa.int64())),
        digest(a=pa.large_list(pa.int64())),
        digest(a=pa.struct({"a": pa.int64()})),
        digest(a=pa.struct({"b": pa.int64()})),
        digest(a=pa.string()),
        schema_digest(pa.schema([columns.json_field("a")])),
        schema_digest(schema),
    ]
    assert len(set(others)) == len(others)


def test_what_cannot_be_recorded_is_named() -> None:
    with pytest.raises(NotFinite, match=r"\$\.value\[1\]\.x is nan"):
        encode_table(rows_of(1.0, float("nan")), VALUE)
    with pytest.raises(ValueNotPlain, match=r"\$\.value\[0\]\.x holds a lone surrogate"):
        encode_table(rows_of("\ud800", ""), VALUE)
    with pytest.raises(ValueNotPlain, match="lone surrogate"):
        encode_table({"value": [{"\ud800": 1}] * 2}, VALUE)

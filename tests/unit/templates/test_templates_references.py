"""A large result answers what its block knows, and says what it needs for the rest."""

from typing import Any

import pytest

from noetl.templates.extract import cut_as_plain, cut_from_plain, extract
from noetl.templates.reference import Cut, Reference
from tests.unit.templates.rendered import needed, rendered

URI = "noetl://acme/p/results/1/fetch/0/0/1@1"
WHOLE: dict[str, Any] = {
    "status": "ok",
    "row_count": 50_000,
    "rows": [{"id": number, "note": "n" * 40} for number in range(50_000)],
    "ids": [1, 2, 3],
    "body": "x" * 100_000,
    "meta": {"page": 3},
    "nested": {"long": "y" * 10_000, "short": 1},
}
BLOCK, CUT = extract(WHOLE)
assert CUT is not None
FETCH = Reference(URI, BLOCK, CUT)
BINDINGS = {"fetch": FETCH, "unknown": Reference("noetl://u"), "list": [FETCH]}


@pytest.mark.parametrize(
    "expression",
    [
        "fetch.status",
        "fetch['row_count']",
        "fetch.rows | length",
        "fetch.rows[0].id",
        "fetch.rows[0]",
        "fetch.rows | first",
        "(fetch.rows | first).id",
        "fetch.rows[70000]",
        "fetch.rows[0:1]",
        "fetch.rows[0:0]",
        "fetch.ids",
        "fetch.ids | sum",
        "fetch.meta.page + 1",
        "fetch.missing",
        "fetch.missing.deep | default(4)",
        "fetch.missing is defined",
        "fetch | length",
        "fetch.body | length",
        "fetch.nested.short",
        "fetch.rows | length > 100 and fetch.status == 'ok'",
        "fetch.rows != []",
        "fetch.rows == none",
        "fetch.body == 'short'",
        "fetch.rows is sequence and fetch.body is string and fetch is mapping",
        "fetch.rows is string or fetch.body is mapping",
        "'status' in fetch and 'other' not in fetch",
        "fetch | keys",
        "fetch.nested.keys()",
        "fetch.get('status')",
        "fetch.get('other', 5)",
        "1 if fetch.rows else 2",
        "not fetch.rows",
        "list | length",
        "fetch.body.upper",
    ],
)
def test_it_answers_as_the_whole_would(expression: str) -> None:
    whole = {"fetch": WHOLE, "list": [WHOLE]}

    assert rendered(f"{{{{ {expression} }}}}", BINDINGS) == rendered(
        f"{{{{ {expression} }}}}", whole
    )


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("fetch.rows[1100].id", ("rows", 1100)),
        ("fetch.rows[-1]", ("rows", 49_999)),
        ("fetch.rows | last", ("rows", 49_999)),
        ("fetch.rows[0:2000]", ("rows",)),
        ("fetch.rows | map(attribute='id')", ("rows",)),
        ("fetch.rows | tojson", ("rows",)),
        ("fetch | tojson", ()),
        ("fetch.rows ~ ''", ("rows",)),
        ("fetch.rows + [1]", ("rows",)),
        ("[1] + fetch.rows", ("rows",)),
        ("fetch.body | upper", ("body",)),
        ("fetch.body | int", ("body",)),
        ("fetch.body.upper()", ("body",)),
        ("fetch.body[5]", ("body", 5)),
        ("fetch.body[0:5]", ("body",)),
        ("'z' in fetch.body", ("body",)),
        ("fetch.body < 'z'", ("body",)),
        ("'%s' % fetch.body", ("body",)),
        ("'%s %s' % (fetch.body, 1)", ("body",)),
        ("[fetch.body] | map('int') | list", ("body",)),
        ("[fetch.body] | join", ("body",)),
        ("[fetch.body] | sort | list + [1] if [fetch.body, 'a'] | sort else 0", ("body",)),
        ("1 in fetch.rows", ("rows",)),
        ("fetch.nested.long == '" + "y" * 10_000 + "'", ("nested", "long")),
        ("unknown.x", ("x",)),
        ("unknown | length", ()),
        ("unknown is mapping", ()),
        ("unknown == 1", ()),
        ("list | map(attribute='body') | map('upper') | list", ("body",)),
    ],
)
def test_past_the_block_it_needs_the_payload(expression: str, path: tuple[Any, ...]) -> None:
    assert needed(f"{{{{ {expression} }}}}", BINDINGS) == {path}


@pytest.mark.parametrize(
    "template", ["x {{ fetch.rows }}", "{% for r in fetch.rows %}{{ r }}{% endfor %}"]
)
def test_text_and_loops_need_all_of_it(template: str) -> None:
    assert needed(template, BINDINGS) == {("rows",)}


def test_a_whole_value_passes_the_reference_on() -> None:
    rows = rendered("{{ fetch.rows }}", BINDINGS)

    assert isinstance(rows, Reference)
    assert (rows.payload, rows.path, len(rows)) == (URI, ("rows",), 50_000)
    assert rendered("{{ fetch }}", BINDINGS) is FETCH
    assert rendered("{{ unknown }}", BINDINGS) is BINDINGS["unknown"]
    assert rendered("{{ fetch.rows | default([]) }}", BINDINGS) == rows
    assert rendered("{{ [1] + [fetch.rows] }}", BINDINGS) == [1, rows]
    assert rendered({"in": "{{ fetch.rows }}"}, BINDINGS) == {"in": rows}


def test_needs_of_all_templates_are_collected() -> None:
    value = ["{{ fetch.rows[9].id }}", {"a": "{{ fetch.body | upper }}"}, "{{ fetch.status }}"]

    assert needed(value, BINDINGS) == {("rows", 9), ("body",)}


def test_an_object_with_too_many_keys_does_not_guess_about_the_others() -> None:
    many = {f"key{number}": number for number in range(5_000)}
    block, cut = extract(many)
    assert cut is not None
    bindings = {"many": Reference("noetl://m", block, cut)}

    assert rendered("{{ many.key0 }}{{ many | length }}", bindings) == "05000"
    assert needed("{{ many.key4999 }}", bindings) == {("key4999",)}
    assert needed("{{ many.nothing is defined }}", bindings) == {("nothing",)}
    assert needed("{{ many | keys }}", bindings) == {()}
    assert needed("{{ 'key4999' in many }}", bindings) == {()}


def test_two_references_to_one_place_are_equal_and_others_are_not_guessed() -> None:
    assert Reference("noetl://a", path=("x",)) == Reference("noetl://a", path=("x",))
    assert rendered("{{ fetch.rows == fetch.body }}", BINDINGS) is False
    assert needed("{{ fetch == unknown }}", BINDINGS) == {()}
    assert len({FETCH, FETCH}) == 1
    assert URI in repr(FETCH)


def test_small_values_need_no_reference() -> None:
    assert extract({"a": [1, 2, {"b": "c"}]}) == ({"a": [1, 2, {"b": "c"}]}, None)


def test_a_cut_travels_as_plain_data() -> None:
    block, cut = extract({"rows": [["z" * 9_000, 1], 2] * 90, "0": {"1": "w" * 9_000}})
    assert cut is not None

    plain = cut_as_plain(cut)

    assert plain["within"]["rows"]["length"] == 180
    assert cut_from_plain(plain, block) == cut
    assert cut_as_plain(Cut()) == {}

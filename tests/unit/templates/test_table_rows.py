"""Rows of large tables in templates: as good as the list, and decoded where somebody looks."""

from typing import Any

import pytest

from noetl.templates.errors import TemplateFailed, TemplateTooLarge
from noetl.templates.extract import extract
from noetl.templates.render import Judgement, Rendered, Verdict, judge, render
from noetl.templates.table_rows import CHUNK_ROWS, TableRows, as_lists, has_tables

ROWS = [{"id": number, "name": f"n{number}"} for number in range(3_000)]


class Source:
    """A table that remembers how many rows were asked of it."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.decoded = 0
        self._rows = rows

    @property
    def length(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> dict[str, Any]:
        self.decoded += 1
        return self._rows[index]

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        found = self._rows[start:stop]
        self.decoded += len(found)
        return found


def both(template: str, rows: list[dict[str, Any]] = ROWS) -> int:
    """How many rows were decoded for the answer that the list gives, too."""
    source = Source(rows)
    answers = [
        render(template, {"rows": given, "few": rows[:2]}) for given in (rows, TableRows(source))
    ]
    listed, lazy = answers
    assert isinstance(listed, Rendered)
    assert isinstance(lazy, Rendered)
    assert as_lists(lazy.value) == listed.value
    return source.decoded


@pytest.mark.parametrize(
    "template",
    [
        "{{ rows[1100].name }}",
        "{{ rows[-1].id }}",
        "{{ rows | first }}",
        "{{ (rows | last).name }}",
        "{{ rows | length }}",
        "{{ rows is iterable and rows is sequence and rows is not mapping }}",
        "{{ rows[5000] is defined }}",
        "{{ rows[2:4] }}",
        "{{ rows[10:2:-3] }}",
        "{{ rows.name | default('none') }}",
        "{{ 'yes' if rows else 'no' }}",
        "{{ rows == few }}",
        "{{ rows | get(7) }}",
    ],
)
def test_what_needs_few_rows_decodes_few(template: str) -> None:
    assert both(template) <= 4


@pytest.mark.parametrize(
    "template",
    [
        "{{ rows | map(attribute='id') | sum }}",
        "{{ rows | selectattr('id', 'gt', 2997) | list }}",
        "{{ (rows + few) | length }}",
        "{{ (few + rows) | length }}",
        "{{ few[1] in rows }}",
        "{{ {'id': -1} not in rows }}",
        "{{ rows == rows[0:] }}",
        "{% for row in rows[:3] %}{{ row.name }}{% endfor %}",
        "{{ rows | sort(attribute='name') | first }}",
        "{{ rows | batch(1000) | length }}",
        "{{ rows | tojson | length }}",
        "{{ rows | join(',', attribute='id') }}",
        "count: {{ rows | reverse | list | length }}",
    ],
)
def test_filters_operators_and_loops_give_what_the_list_gives(template: str) -> None:
    both(template)


def test_passing_all_of_it_on_decodes_nothing() -> None:
    source = Source(ROWS)
    rows = TableRows(source)
    rendered = render({"given": "{{ rows }}"}, {"rows": rows})
    assert isinstance(rendered, Rendered)
    assert rendered.value["given"] is rows
    assert source.decoded == 0


def test_work_over_many_rows_is_bounded_as_over_a_list() -> None:
    many = TableRows(Source(ROWS * 100))
    with pytest.raises(TemplateTooLarge):
        render("{{ rows | map(attribute='id') | sum }}", {"rows": many})
    with pytest.raises(TemplateTooLarge):
        render("{{ rows | tojson }}", {"rows": many})
    with pytest.raises(TemplateFailed):
        render("{{ rows - 1 }}", {"rows": TableRows(Source(ROWS))})
    judged = judge("{{ rows | length == 300000 }}", {"rows": many})
    assert isinstance(judged, Judgement)
    assert judged.verdict is Verdict.HOLDS


def test_equality_is_that_of_the_list() -> None:
    rows = TableRows(Source(ROWS))
    assert rows == ROWS
    assert rows == TableRows(Source(list(ROWS)))
    assert rows != ROWS[:-1]
    assert rows != [*ROWS[:-1], {"id": 0, "name": "other"}]
    assert rows != {"a": 1}
    assert list(rows) == ROWS
    assert rows.__radd__([1]) == [1, *ROWS]
    assert CHUNK_ROWS < len(ROWS)


def test_tables_are_found_and_replaced_wherever_objects_lead() -> None:
    rows = TableRows(Source(ROWS))
    nested = {"a": [1, {"b": rows}], "c": 2}
    assert has_tables(nested)
    assert as_lists(nested) == {"a": [1, {"b": ROWS}], "c": 2}
    plain = {"a": [1, {"b": 2}]}
    assert not has_tables(plain)
    assert as_lists(plain) is plain


def test_the_extracted_block_is_that_of_the_list() -> None:
    source = Source(ROWS)
    assert extract({"rows": TableRows(source)}) == extract({"rows": ROWS})
    assert source.decoded < 200

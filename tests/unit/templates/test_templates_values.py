"""One expression alone is a value; anything else is text."""

from typing import Any

import pytest

from noetl.templates.compiled import TEMPLATES_KEPT_MAX, compiled, names_in
from noetl.templates.errors import TemplateInvalid
from noetl.templates.render import Rendered, render_code
from tests.unit.templates.rendered import rendered

ROWS = [{"id": 1}, {"id": 2}]
BINDINGS: dict[str, Any] = {
    "number": 7,
    "digits": "1",
    "list_text": "[1,2]",
    "flag": True,
    "word": "True",
    "rows": ROWS,
    "nothing": None,
    "start": {"items": [5], "keys": "own", "data": {"get": 3}},
    "iter": {"_index": 4},
    "hasMore": True,
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ number }}", 7),
        ("{{ digits }}", "1"),
        ("{{ list_text }}", "[1,2]"),
        ("{{ word }}", "True"),
        ("{{ flag }}", True),
        ("{{ nothing }}", None),
        ("{{ '1' ~ '2' }}", "12"),
        ("{{ number | int + 1 }}", 8),
        ("{{ rows + [number] }}", [*ROWS, 7]),
        ("{{ number, digits }}", [7, "1"]),
        ("{{ {'a': missing} }}", {"a": None}),
        ("{{ rows | map(attribute='id') }}", [1, 2]),
        ("{{ rows[0:1] }}", [{"id": 1}]),
        ("{{ rows[-1].id }}", 2),
        ("  {{ number }}\n", 7),
        ("{{- number -}}", 7),
        ("{{ '}}' }}", "}}"),
    ],
)
def test_a_lone_expression_gives_its_value_and_never_parses_it_again(
    template: str, value: Any
) -> None:
    found = rendered(template, BINDINGS)

    assert found == value
    assert type(found) is type(value)


def test_a_value_of_the_bindings_is_handed_on_and_not_copied() -> None:
    assert rendered("{{ rows }}", BINDINGS) is ROWS
    assert rendered("{{ missing | default(rows) }}", BINDINGS) is ROWS
    assert rendered("{{ rows if flag else nothing }}", BINDINGS) is ROWS


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ number }}{{ digits }}", "71"),
        ("n={{ number }}", "n=7"),
        ("rows: {{ rows }}", 'rows: [{"id":1},{"id":2}]'),
        ("{{ start.data }}!", '{"get":3}!'),
        ("<{{ nothing }}{{ missing }}{{ missing.deep[0] }}>", "<>"),
        ("{{ 'a' ~ rows[0] ~ nothing }}!", 'a{"id":1}!'),
        ("{% if number > 5 %}big{% elif flag %}x{% else %}small{% endif %}", "big"),
        ("{% for row in rows %}{{ row.id }}{% if not loop.last %},{% endif %}{% endfor %}", "1,2"),
        ("{% for key, value in start.data.items() %}{{ key }}={{ value }}{% endfor %}", "get=3"),
        ("{% set x = number * 2 %}{{ x }} ", "14 "),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("SELECT 1\n-- {{ number }}\n", "SELECT 1\n-- 7\n"),
    ],
)
def test_anything_else_gives_text(template: str, text: str) -> None:
    assert rendered(template, BINDINGS) == text


@pytest.mark.parametrize("value", ["plain", "", "{ not }", "{# x #}", 5, 1.5, None, True, [1], {}])
def test_what_is_no_template_stays_as_it_is(value: Any) -> None:
    assert rendered(value, BINDINGS) == value


def test_templates_are_found_in_any_depth_and_keys_are_left_alone() -> None:
    value = {"{{ number }}": [{"deep": "{{ number }}"}, "n{{ number }}"], "other": 1}

    assert rendered(value, BINDINGS) == {"{{ number }}": [{"deep": 7}, "n7"], "other": 1}


def test_a_name_after_a_dot_is_a_key_and_never_a_method() -> None:
    assert rendered("{{ start.items }}", BINDINGS) == [5]
    assert rendered("{{ start.keys }}", BINDINGS) == "own"
    assert rendered("{{ start.data.get }}", BINDINGS) == 3
    assert rendered("{{ start.values }}", BINDINGS) is None
    assert rendered("{{ digits.upper }}", BINDINGS) is None
    assert rendered("{{ start.keys() }}", BINDINGS) == ["items", "keys", "data"]


def test_keys_that_begin_with_an_underscore_are_data() -> None:
    assert rendered("{{ iter._index }}", BINDINGS) == 4
    assert rendered("{{ iter._other is defined }}", BINDINGS) is False


def test_missing_names_chain_and_have_defaults() -> None:
    assert rendered("{{ a.b['c'][0].d }}") is None
    assert rendered("{{ a.b.c | default('x') }}") == "x"
    assert rendered("{{ a.b | d(3) }}") == 3
    assert rendered("{{ nothing | default('x') }}", BINDINGS) is None
    assert rendered("{{ nothing | default('x', true) }}", BINDINGS) == "x"
    assert rendered("{{ a.b is defined or number is defined }}", BINDINGS) is True
    assert rendered("{% for x in a.b %}x{% endfor %}.") == "."


def test_an_own_name_self_is_not_the_template() -> None:
    assert rendered("{{ self }}") is None
    assert rendered("{{ self.name }}", {"self": {"name": "x"}}) == "x"


def test_a_function_and_a_value_may_share_a_name() -> None:
    assert rendered("{{ range }}{{ range(2) | list }}", {"range": "r"}) == "r[0,1]"


def test_rendering_changes_nothing_in_the_bindings() -> None:
    bindings = {"a": {"b": [3, 1]}, "ns": [1]}

    rendered("{{ a.b | sort }}{{ a.b + [1] }}{% set a = 5 %}{% set b = namespace(x=1) %}", bindings)

    assert bindings == {"a": {"b": [3, 1]}, "ns": [1]}


def test_equal_text_is_compiled_once() -> None:
    source = "{{ compiled_once }}"

    assert compiled(source, False) is compiled(source, False)
    assert compiled(source, False) is not compiled(source, True)
    assert compiled.cache_info().maxsize == TEMPLATES_KEPT_MAX


def test_the_names_that_a_template_asks_for_are_known_before_it_runs() -> None:
    source = "{% for row in rows %}{{ row.id ~ ctx.a | default(now()) }}{% endfor %}"

    assert names_in(source) == {"rows", "ctx"}
    assert names_in("plain") == frozenset()
    with pytest.raises(TemplateInvalid):
        names_in("{{ (")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = {{ number }}", "x = 7"),
        ("x = '{{ rows }}'", """x = '[{"id":1},{"id":2}]'"""),
        ('f"{{literal}} {number}"', 'f"{{literal}} {number}"'),
        ('f"{{{number}}}"', 'f"{{{number}}}"'),
        ("x = {{ unknown | default(3) }}", "x = 3"),
        ("'{%s}' % a", "'{%s}' % a"),
        ("{% if flag %}yes{% endif %}", "yes"),
        ("a = {'b': {'c': 1}}", "a = {'b': {'c': 1}}"),
    ],
)
def test_in_code_only_what_is_surely_a_template_is_replaced(code: str, expected: str) -> None:
    assert render_code(code, BINDINGS) == Rendered(expected)

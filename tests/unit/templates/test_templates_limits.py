"""What would be large is refused before it is made."""

import tracemalloc

import pytest

from noetl.templates import limits
from noetl.templates.errors import TemplateError, TemplateTooLarge
from tests.unit.templates.rendered import rendered

NESTED = "{% set a = [1] %}" + "{% set a = [a, a] %}" * 40
OTHER = "{% set b = [1] %}" + "{% set b = [b, b] %}" * 40

BOMBS = [
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [0] * 10**9 }}",
    "{{ 10 ** (10 ** 10) }}",
    "{{ 2 ** 5000 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%.1000000000f' % 1 }}",
    "{{ '%(a)9999d' * 10000 % {'a': 1} }}",
    "{{ '%(a)s' * 10**5 % {'a': 'x' * 10**6} }}",
    "{{ '%(a(b))1000000000d' % {'a(b)': 1} }}",
    "{{ ('aa ' * 10**7).split() }}",
    "{{ ('aa,' * 10**7) | split(',') }}",
    "{{ ('[],' * 10**6) | fromjson }}",
    "{{ 'x' | center(1e9) }}",
    "{{ ('a\n' * 10**6) | indent(1000) | length }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ 'x' | center(10**9) }}",
    "{{ 'x'.ljust(10**9) }}",
    "{{ 'x'.zfill(10**9) }}",
    "{{ 'a\nb' | indent(10**9) }}",
    "{{ [1] | tojson(indent=10**9) }}",
    "{{ 1 | round(10**9) }}",
    "{{ 1 | round(-10**9) }}",
    "{{ 1 | round(10**9, 'floor') }}",
    "{{ [1] | batch(10**9, 0) }}",
    "{{ range(10**6) }}",
    "{{ range(10**30) }}",
    "{{ ('a' * 10**6).replace('a', 'b' * 10**6) }}",
    "{{ ('a' * 10**6) | replace('', 'b' * 10**6) }}",
    "{{ range(100000) | join('x' * 10**6) }}",
    "{{ range(100000) | map('center', 10000) | list }}",
    "{{ ['a' * 10**7] * 100 }}",
    "{{ (['a' * 10**7] * 100) | tojson }}",
    "{{ (['a' * 10**7] * 100) | join }}",
    "{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{{ range(100000) | sum }}{% endfor %}",
    "{% for a in range(100000) %}" + "x" * 1_000 + "{% endfor %}",
    NESTED + "{{ a }}",
    NESTED + "{{ a | tojson }}",
    NESTED + "{{ a | sort }}",
    NESTED + "{{ a | string | length }}",
    NESTED + "{{ '%s' % a }}",
    NESTED + "{{ '%s' % (a,) }}",
    NESTED + OTHER + "{{ a == b }}",
    NESTED + OTHER + "{{ a is eq(b) }}",
    NESTED + "{{ a in [a] }}",
    NESTED + OTHER + "{{ [a, b] | sort | length }}",
    NESTED + OTHER + "{{ [a, b] | max | length }}",
    NESTED + "{{ [a].index(1) }}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
    "{{ " + "[" * 100 + "]" * 100 + " }}",
    "{{ a" + ".b" * 5_000 + " }}",
    "{{ 1" + " + 1" * 5_000 + " }}",
    "{{ " + "not " * 5_000 + "1 }}",
    "{{ a" + " | int" * 5_000 + " }}",
    "{% if 1 %}" * 200 + "{% endif %}" * 200,
    "{% for a in b %}" * 30 + "{% endfor %}" * 30,
    "x{{ 1 }}" + "y" * limits.TEMPLATE_CHARS_MAX,
]


@pytest.mark.parametrize("template", BOMBS, ids=lambda text: text[:40])
def test_a_bomb_is_refused(template: str) -> None:
    with pytest.raises(TemplateError, match=r"limit is|more than|width|deeper than|bracket"):
        rendered(template)


@pytest.mark.parametrize(
    "template", [bomb for bomb in BOMBS if "{% set a" not in bomb], ids=lambda text: text[:40]
)
def test_it_is_refused_before_it_takes_memory(template: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            rendered(template)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 100_000_000


def test_a_refusal_names_the_limit() -> None:
    with pytest.raises(TemplateTooLarge, match=f"STEPS_MAX = {limits.STEPS_MAX:,}"):
        rendered("{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}")
    with pytest.raises(TemplateTooLarge, match=f"TEXT_CHARS_MAX = {limits.TEXT_CHARS_MAX:,}"):
        rendered("{{ 'a' * 10**9 }}")


def test_the_budget_is_for_the_whole_value() -> None:
    loop = "{% for a in range(200) %}{% for b in range(1000) %}{% endfor %}{% endfor %}"

    assert rendered([loop]) == [""]
    with pytest.raises(TemplateTooLarge):
        rendered([loop, loop])


def test_what_is_merely_big_is_fine() -> None:
    rows = [{"id": number, "name": "x" * 20} for number in range(20_000)]
    line = """({{ row.id }}, '{{ row.name | replace("'", "''") }}'),"""
    sql = f"{{% for row in rows %}}{line}{{% endfor %}}"

    assert len(rendered(sql, {"rows": rows})) > 500_000
    assert rendered("{{ rows | length }}", {"rows": rows * 100}) == 2_000_000
    assert rendered("{{ 2 ** 100 }}") == 2**100
    assert rendered("((((" * 10 + "{{ [" + "[]," * 50 + "] | length }}") == "((((" * 10 + "50"
    assert rendered("{{ " + "(" * 20 + "1" + ")" * 20 + " }}") == 1
    assert rendered("{{ a" + ".b" * 50 + " }}") is None


def test_a_value_deeper_than_json_allows_is_refused() -> None:
    deep: list[object] = []
    for _ in range(limits.VALUE_DEPTH_MAX + 2):
        deep = [deep]

    with pytest.raises(TemplateTooLarge, match="nested deeper than"):
        rendered("x{{ deep }}", {"deep": deep})

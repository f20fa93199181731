"""Filters, tests, methods and operators, as playbooks use them."""

from typing import Any

import pytest

from noetl.templates.errors import TemplateError, TemplateFailed
from tests.unit.templates.rendered import rendered

BINDINGS: dict[str, Any] = {
    "apostrophe": {"b": "it's <b>", "a": "é"},
    "people": [{"name": "Bo", "age": 5}, {"name": "Al", "age": 7}, {"name": "Cy", "age": 5}],
    "numbers": [3, 1, 2],
    "map": {"x": 1, "y": None},
    "text": " Some Text ",
    "flag": False,
    "infinite": float("inf"),
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ apostrophe | tojson }}", '{"b":"it\'s <b>","a":"é"}'),
        ("{{ apostrophe | to_json(indent=1) }}", '{\n "b": "it\'s <b>",\n "a": "é"\n}'),
        ("""{{ apostrophe.b | tojson | replace("'", "''") }}""", "\"it''s <b>\""),
        ("{{ '[1, {\"a\": null}]' | fromjson }}", [1, {"a": None}]),
        ("{{ '7' | from_json }}", 7),
        ("{{ 'ü' | b64encode }}", "w7w="),
        ("{{ 'w7w=' | b64decode }}", "ü"),
        ("{{ '12' | int }}", 12),
        ("{{ '3.7' | int }}", 3),
        ("{{ '' | int }}", 0),
        ("{{ none | int }}", 0),
        ("{{ missing.x | int }}", 0),
        ("{{ true | int }}", 1),
        ("{{ 'ff' | int(base=16) }}", 255),
        ("{{ 'x' | int(5) }}", 5),
        ("{{ '2.5' | float }}", 2.5),
        ("{{ missing | float(1.5) }}", 1.5),
        ("{{ people | length }}", 3),
        ("{{ missing | length }}", 0),
        ("{{ text | len }}", 11),
        ("{{ flag | lower }}", "false"),
        ("{{ text | trim | upper }}", "SOME TEXT"),
        ("{{ 5 | string }}", "5"),
        ("{{ numbers | first }}", 3),
        ("{{ numbers | last }}", 2),
        ("{{ [] | first }}", None),
        ("{{ [] | last | default('none') }}", "none"),
        ("{{ 'a,b' | split(',') }}", ["a", "b"]),
        ("{{ numbers | join('-') }}", "3-1-2"),
        ("{{ people | join(',', attribute='name') }}", "Bo,Al,Cy"),
        ("{{ map | keys }}", ["x", "y"]),
        ("{{ map | values }}", [1, None]),
        ("{{ map | items }}", [["x", 1], ["y", None]]),
        ("{{ map | get('z', 9) }}", 9),
        ("{{ map.get('x') }}", 1),
        ("{{ text | safe }}", " Some Text "),
        ("{{ numbers | sort }}", [1, 2, 3]),
        ("{{ numbers | sort(reverse=true) | list }}", [3, 2, 1]),
        ("{{ numbers | sum }}", 6),
        ("{{ people | sum(attribute='age') }}", 17),
        ("{{ numbers | max }}", 3),
        ("{{ numbers | reverse | list }}", [2, 1, 3]),
        ("{{ [1, 1, 2] | unique | list }}", [1, 2]),
        (
            "{{ people | selectattr('age', 'equalto', 5) | map(attribute='name') | list }}",
            ["Bo", "Cy"],
        ),
        ("{{ people | rejectattr('age', '>', 5) | list | length }}", 2),
        ("{{ numbers | select('odd') | list }}", [3, 1]),
        ("{{ numbers | map('string') | list }}", ["3", "1", "2"]),
        ("{{ people | groupby('age') | map(attribute='grouper') | list }}", [5, 7]),
        ("{{ (people | groupby('age'))[0].list | length }}", 2),
        ("{{ map | dictsort }}", [["x", 1], ["y", None]]),
        ("{{ [1, 2, 3] | batch(2) }}", [[1, 2], [3]]),
        ("{{ [1, 2, 3] | batch(2, 0) }}", [[1, 2], [3, 0]]),
        ("{{ 2.567 | round(1) }}", 2.6),
        ("{{ 2.1 | round(0, 'ceil') }}", 3.0),
        ("{{ (-3) | abs }}", 3),
        ("{{ 'a/b c' | urlencode }}", "a/b%20c"),
        ("{{ {'q': 'a b', 'n': 1} | urlencode }}", "q=a+b&n=1"),
        ("{{ 'one two three' | truncate(9) }}", "one..."),
        ("{{ 'one two' | wordcount }}", 2),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{{ '%05d|%s' | format(7, 'x') }}", "00007|x"),
        ("{{ '%(a)s' % {'a': [1]} }}", "[1]"),
        ("{{ 'x' | center(5) }}", "  x  "),
        ("{{ 'Ab'.lower().replace('a', 'c').startswith('c') }}", True),
        ("{{ ', '.join(numbers) }}", "3, 1, 2"),
        ("{{ 'a b'.split() }}", ["a", "b"]),
        ("{{ 'b' in 'abc' and 2 in numbers and 'x' in map and 9 not in numbers }}", True),
        ("{{ 1 < 2 <= 2 < 3 }}", True),
        ("{{ 'banana'.count('a') + [1, 1].count(1) + [5, 6].index(6) }}", 6),
        ("{{ dict(a=1) }}", {"a": 1}),
        ("{% for n in numbers %}{{ loop.cycle('x', 'y') }}{% endfor %}", "xyx"),
        ("{{ true is true and false is false and missing is undefined }}", True),
        ("{{ 'abc' | truncate(5) ~ 'x'.zfill(3) }}", "abc00x"),
        ("{{ infinite | int(7) }}", 7),
        ("{{ 'x' | float(2.0) }}", 2.0),
        ("{{ 1 < 3 < 2 }}", False),
        ("{{ 7 // 2 + 7 % 4 - 2 ** 3 }}", -2),
        ("{{ text is string and 5 is number and map is mapping and numbers is sequence }}", True),
        ("{{ none is none and 4 is even and 3 is odd and 9 is divisibleby(3) }}", True),
        ("{{ true is number or 1 is boolean or 1.5 is integer }}", False),
    ],
)
def test_it_gives(template: str, value: Any) -> None:
    assert rendered(template, BINDINGS) == value


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ '{' | fromjson }}", "not JSON"),
        ("{{ 'NaN' | fromjson }}", "NaN is not JSON"),
        ("{{ '!' | b64decode }}", "not base64"),
        ("{{ [[1]] | sum }}", "sum adds numbers"),
        ("{{ [1] | batch(0) }}", "at least 1"),
        ("{{ 1 | round(0, 'up') }}", "common, ceil or floor"),
        ("{{ 5 | items }}", "use a mapping"),
        ("{{ 5.upper() }}", "int has no method upper|cannot be read|unexpected"),
        ("{{ missing.upper() }}", "give a default first"),
        ("{{ numbers.upper() }}", "list has no method upper"),
        ("{{ 5 | string | fromjson | items }}", "use a mapping"),
        ("{{ map.count(1) }}", "dict has no method count"),
        ("{{ map.index(1) }}", "dict has no method index"),
        ("{{ map.split() }}", "dict has no method split"),
        ("{{ map.join([]) }}", "dict has no method join"),
        ("{{ map.replace('a', 'b') }}", "dict has no method replace"),
        ("{{ map.isoformat() }}", "dict has no method isoformat"),
        ("{{ map.strftime('%Y') }}", "dict has no method strftime"),
        ("{{ map.timestamp() }}", "dict has no method timestamp"),
        ("{{ map.cycle(1) }}", "dict has no method cycle"),
        ("{{ {missing: 1} }}", "cannot be a key"),
        ("{{ missing + 1 }}", "'missing' is undefined; give it a default"),
        ("{{ missing > 1 }}", "'missing' is undefined"),
        ("{{ 'a' + 1 }}", "join text with `~`"),
        ("{{ 1 / 0 }}", "check the divisor"),
        ("{{ none | length }}", "NoneType"),
        ("{% for x in 5 %}{% endfor %}", "nothing to loop over"),
    ],
)
def test_it_says_why_it_cannot(template: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        rendered(template, BINDINGS)


def test_a_number_that_json_cannot_carry_is_no_json() -> None:
    with pytest.raises(TemplateFailed, match="JSON"):
        rendered("{{ x | tojson }}", {"x": float("nan")})

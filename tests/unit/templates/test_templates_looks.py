"""Templates that only look values up are answered as Jinja would answer them."""

from typing import Any

import pytest

from noetl.templates.bindings import Bindings, Late, all_of
from noetl.templates.compiled import compiled
from noetl.templates.errors import NeedsPayload, TemplateRefused
from noetl.templates.layered import Outcome, output_of_envelope
from noetl.templates.looks import Look
from noetl.templates.reference import Reference
from noetl.templates.render import render
from noetl.templates.rendering import Rendering
from noetl.templates.secret import Secret

NAMES: dict[str, Any] = {
    "a": {"b": [{"c": 1}, "two"], "items": "own", "none": None, "text": "x" * 5},
    "list": [[1, 2], {"k": [3]}],
    "number": 1.5,
    "word": Secret("hunter2-hunter2"),
    "held": {"word": Secret("hunter2-hunter2")},
    "output": output_of_envelope(Outcome(result={"status_code": 200, "data": {"page": 2}})),
}
LOOKS = [
    *("{{ a }}", "{{ a.b }}", " {{ a.b[0].c }}\n", "{{ a['b'][1] }}", "{{ a.items }}"),
    *("{{ a.none }}", "{{ a.missing.below }}", "{{ nowhere }}", "{{ nowhere.x[0] }}"),
    *("{{ list[5].x }}", "{{ list.k }}", "{{ number }}", "{{ word }}", "{{ held }}"),
    *("{{ output.page }}", "{{ output.data.page }}", "{{ output.error.kind }}", "{{ output }}"),
    *("at {{ a.b[0].c }} and {{ a.text }}", "{{ a.b }}{{ a.none }}", "{{ nowhere.x }}!"),
    *("{{ list }} {{ number }}", "{{ held.word }}/{{ word }}"),
]


def told(source: str, *, reveals: bool) -> tuple[Any, Any]:
    """What a template gives, and what Jinja gives for it."""
    template, bindings = compiled(source, reveals), Bindings(layers=(NAMES,))
    by_jinja = template._replace(look=None, pieces=None)
    assert by_jinja != template
    return (
        template.evaluate(Rendering(bindings, reveals)),
        by_jinja.evaluate(Rendering(bindings, reveals)),
    )


@pytest.mark.parametrize("source", LOOKS)
@pytest.mark.parametrize("reveals", [False, True])
def test_a_look_gives_what_jinja_gives(source: str, reveals: bool) -> None:
    looked, by_jinja = told(source, reveals=reveals)

    assert looked == by_jinja
    assert type(looked) is type(by_jinja)


@pytest.mark.parametrize(
    "source",
    [
        "{{ self }}",
        "{{ a.b | length }}",
        "{{ a.b[1:] }}",
        "{{ a.b[-1] }}",
        "{{ a[key] }}",
        "{{ a.get() }}",
    ],
)
def test_whatever_does_more_is_left_to_jinja(source: str) -> None:
    template = compiled(source, False)

    assert (template.look, template.pieces) == (None, None)
    assert compiled("{{ a.b[0] }}", False).look == Look("a", ("b", 0))


@pytest.mark.parametrize("source", ["{{ a.b.__class__ }}", "x {{ a.text }}\n{{ a\n.__len__ }}"])
def test_a_look_that_is_refused_says_where(source: str) -> None:
    with pytest.raises(TemplateRefused) as refused:
        render({"outer": [source]}, NAMES)

    assert refused.value.path == ("outer", 0)
    assert refused.value.line == source.count("\n") + 1


def test_a_look_past_what_is_known_of_a_result_needs_it() -> None:
    rendering = Rendering(Bindings(layers=({"r": Reference("noetl://r")},)), False)

    with pytest.raises(NeedsPayload):
        compiled("{{ r.rows }}", False).evaluate(rendering)


def test_a_late_value_is_made_once_and_only_for_whoever_asks() -> None:
    made: list[str] = []

    def make(word: str) -> str:
        made.append(word)
        return word.upper()

    late = Late(make, "word")
    bindings = Bindings(layers=({"n": 1},)).define({"late": late, "again": late})
    assert bindings.find("n") == 1
    assert made == []
    assert (bindings.find("late"), bindings.find("again")) == ("WORD", "WORD")
    assert made == ["word"]
    assert all_of(bindings.own) == {"late": "WORD", "again": "WORD"}

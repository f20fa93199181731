"""Whatever a template says, only a value, a need or an error of our own comes out, and soon."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noetl.kernel.instant import Instant
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.errors import TemplateError
from noetl.templates.extract import extract
from noetl.templates.reference import Reference
from noetl.templates.render import Needs, Rendered, render
from noetl.templates.secret import Secret, masked

WORD = "hunter2hunter2"
_BLOCK, _CUT = extract({"rows": [{"id": number, "t": "x" * 50} for number in range(999)], "n": 1})
assert _CUT is not None

NAMES: dict[str, Any] = {
    "a": 1,
    "b": [3, 1, 2],
    "c": {"a": {"b": "text"}, "items": [1]},
    "s": "some text",
    "k": Secret(WORD),
    "r": Reference("noetl://r", _BLOCK, _CUT),
    "u": Reference("noetl://u"),
    "f": 1.5,
    "z": 0,
}
BINDINGS = Bindings(
    layers=(NAMES,), moment=Instant("2026-11-15T21:00:00.000000Z"), chance=Chance("fuzz")
)

_SMALL = ["0", "1", "-1", "2.5", "'x'", "''", "[]", "{}", "none", "true", "10**9", "10**30", "loop"]
_ATOMS = [*NAMES, *_SMALL, "missing", "range(3)", "now()", "uuid()", "namespace(a=1)", "self"]
_POSTFIX = [".a", ".rows", ".items", ".__class__", "[0]", "[-1]", "['a']", "[1:]", "[::2]", "[a]"]
_METHODS = [".upper()", ".split()", ".items()", ".get('a')", ".index(1)", ".join(b)", ".center(5)"]
_METHODS += [".strftime('%Y')", ".replace('x', s)", ".count(s)", ".zfill(a)"]
_FILTERS = ["int", "tojson", "length", "first", "last", "list", "sort", "sum", "string", "upper"]
_FILTERS += ["default(a)", "join(s)", "replace(s, b)", "map('string')", "map(attribute='a')", "max"]
_FILTERS += ["selectattr('id')", "select('odd')", "batch(a)", "round(a)", "b64encode", "fromjson"]
_FILTERS += ["groupby('id')", "unique", "dictsort", "items", "reverse", "random", "format(a)"]
_FILTERS += ["center(a)", "truncate(a)", "indent(a)", "urlencode", "split(s)", "get(a)", "keys"]
_BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", ">=", "in", "not in", "and", "or"]
_TESTS = ["defined", "none", "string", "mapping", "even", "divisibleby(a)", "in b", "sequence"]


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from([*_POSTFIX, *_METHODS])).map("".join),
        st.builds("({} | {})".format, inner, st.sampled_from(_FILTERS)),
        st.builds("({} {} {})".format, inner, st.sampled_from(_BINARY), inner),
        st.builds("({} is {})".format, inner, st.sampled_from(_TESTS)),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}}}".format, inner),
        st.builds("(not {})".format, inner),
    )


expressions = st.recursive(st.sampled_from(_ATOMS), _grow, max_leaves=8)
statements = st.one_of(
    st.builds("{{{{ {} }}}}".format, expressions),
    st.builds("x{{{{ {} }}}}y".format, expressions),
    st.builds("{{% if {} %}}a{{% endif %}}".format, expressions),
    st.builds(
        "{{% for i in {} %}}{{{{ i }}}}{{{{ {} }}}}{{% endfor %}}".format, expressions, expressions
    ),
    st.builds("{{% set v = {} %}}{{{{ v ~ {} }}}}".format, expressions, expressions),
)
_PIECES = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{%-",
    "-}}",
    "'",
    '"',
    "(",
    ")",
    "[",
    "]",
    "|",
    ".",
    ",",
]
_PIECES += [
    "if",
    "for",
    "in",
    "endif",
    "endfor",
    "set",
    "macro",
    "raw",
    "endraw",
    "else",
    "with",
    "=",
    "~",
]
_PIECES += [
    " ",
    "\n",
    "\\",
    "*",
    "**",
    "%",
    "a",
    "b",
    "c",
    "__class__",
    "1",
    "9" * 30,
    "é",
    "\x00",
    ":",
]
noise = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=25).map("".join)


def check(source: str, *, reveal: bool) -> None:
    outcome = outcome_of(source, reveal=reveal)
    if isinstance(outcome, TemplateError):
        assert WORD not in f"{outcome} {outcome!r}"
    elif isinstance(outcome, Needs):
        assert {need.payload for need in outcome.needs} <= {"noetl://r", "noetl://u"}
    else:
        json.dumps(masked(outcome.value), default=_reference)
        assert reveal or WORD not in repr(outcome.value)
        assert "object at 0x" not in repr(outcome.value)


def outcome_of(source: str, *, reveal: bool = False) -> Rendered | Needs | TemplateError:
    try:
        return render(source, BINDINGS, reveal_secrets=reveal)
    except TemplateError as error:
        return error


def _reference(value: object) -> str:
    assert isinstance(value, Reference), type(value)
    return "reference"


ODD_PATIENCE = settings(
    max_examples=400, deadline=5_000, suppress_health_check=[HealthCheck.too_slow]
)


@ODD_PATIENCE
@given(statements, st.booleans())
def test_any_expression_ends_in_a_value_a_need_or_our_error(source: str, reveal: bool) -> None:
    check(source, reveal=reveal)


@ODD_PATIENCE
@given(noise, st.booleans())
def test_any_text_ends_in_a_value_a_need_or_our_error(source: str, reveal: bool) -> None:
    check(source, reveal=reveal)


@settings(max_examples=200, deadline=5_000)
@given(statements)
def test_the_same_bindings_give_the_same_answer_and_stay_unchanged(source: str) -> None:
    before = repr(NAMES)

    assert str(outcome_of(source)) == str(outcome_of(source))
    assert repr(NAMES) == before

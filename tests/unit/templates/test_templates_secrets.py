"""A secret shows as `***` everywhere but in a render that was told to reveal it."""

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest

from noetl.templates.errors import TemplateError
from noetl.templates.render import Rendered, Verdict, judge, render
from noetl.templates.secret import MASK, SUBSTRING_CHARS_MIN, Secret, masked, scrub
from tests.unit.templates.rendered import rendered

WORD = "hunter2-hunter2"
TOKEN = Secret(WORD)
BINDINGS: dict[str, Any] = {
    "keychain": {"api": {"token": TOKEN, "user": "bo"}, "all": [TOKEN]},
    "next_page_token": "abc",
    "zero": 0,
}


def test_every_way_to_look_at_it_shows_the_mask() -> None:
    shown = [str(TOKEN), repr(TOKEN), f"{TOKEN}", f"{TOKEN:>40}", f"{TOKEN!r}", repr([TOKEN])]

    assert set(shown) == {MASK, f"[{MASK}]"}
    assert not hasattr(TOKEN, "__dict__")


def test_it_equals_only_itself() -> None:
    assert TOKEN == TOKEN  # noqa: PLR0124
    assert Secret(WORD) != TOKEN
    others: list[object] = [WORD, MASK, None, Secret(WORD)]
    assert TOKEN not in others
    assert len({TOKEN, Secret(WORD)}) == 2


def test_it_does_not_travel() -> None:
    assert copy.deepcopy([TOKEN]) == [TOKEN]
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(TOKEN)
    with pytest.raises(TypeError):
        json.dumps(TOKEN)
    with pytest.raises(TypeError):
        msgspec.json.encode(TOKEN)


@pytest.mark.parametrize(
    "template",
    [
        "Bearer {{ keychain.api.token }}",
        "{{ keychain }}!",
        "{{ keychain | tojson }}",
        "{{ keychain.api.token ~ 'x' }}",
        "{{ keychain.api.token + 'x' }}",
        "{{ 'x' + keychain.api.token }}",
        "{{ keychain.api.token * 2 }}",
        "{{ '%s' % keychain.api.token }}",
        "{{ '%s %s' % (keychain.api.token, 1) }}",
        "{{ keychain.api.token | b64encode }}",
        "{{ keychain.api.token | upper }}",
        "{{ keychain.api.token | string }}",
        "{{ keychain.api.token | list }}",
        "{{ keychain.api.token | first }}",
        "{{ keychain.api.token[0] }}",
        "{{ keychain.api.token[0:3] }}",
        "{{ keychain.api.token.split('-') }}",
        "{{ keychain.all | join(',') }}",
        "{{ keychain.all | map('upper') | list }}",
        "{{ keychain.all | sort }}",
        "{{ keychain.api.token | length }}",
        "{{ keychain.api.token.reveal() }}",
        "{{ keychain.api.token._value }}",
        "{{ keychain.api.token | fromjson }}",
        "{{ keychain[keychain.api.token] }}",
        "{{ 'ter2' in keychain.api.token }}",
        "{{ keychain.api.token > 'h' }}",
        "{% for c in keychain.api.token %}{{ c }}{% endfor %}",
        "{{ 1 / zero }}{{ keychain.api.token }}",
    ],
)
def test_nothing_made_from_it_shows_it(template: str) -> None:
    try:
        shown = repr(render(template, BINDINGS))
    except TemplateError as error:
        shown = f"{error!r} {error}"

    assert not any(part in shown.lower() for part in ("hunter", "h', 'u", "ahvud", "15"))


def test_text_shows_the_mask_and_a_whole_value_stays_opaque() -> None:
    assert rendered("Bearer {{ keychain.api.token }}", BINDINGS) == "Bearer ***"
    assert rendered("{{ keychain.api }}!", BINDINGS) == '{"token":"***","user":"bo"}!'
    assert rendered("{{ keychain.api.token }}", BINDINGS) is TOKEN
    assert rendered("{{ [keychain.api.token] }}", BINDINGS) == [TOKEN]
    assert rendered("{{ keychain.api.token | default('x') }}", BINDINGS) is TOKEN
    assert rendered("{{ keychain.api.token == 'hunter2-hunter2' }}", BINDINGS) is False


def test_a_guard_learns_only_that_it_is_there() -> None:
    judgement = judge("{{ keychain.api.token }}", BINDINGS)

    assert getattr(judgement, "verdict", None) is Verdict.HOLDS


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("Bearer {{ keychain.api.token }}", f"Bearer {WORD}"),
        ("{{ keychain.api.token }}", WORD),
        ("{{ keychain.api }}", {"token": WORD, "user": "bo"}),
        ("{{ keychain.all }}", [WORD]),
        ("{{ [keychain.api.token] }}", [WORD]),
        ("{{ keychain.all | first }}", WORD),
        (
            "{{ (keychain.api.user ~ ':' ~ keychain.api.token) | b64encode }}",
            "Ym86aHVudGVyMi1odW50ZXIy",
        ),
        (
            "{{ keychain | tojson }}",
            json.dumps(
                {"api": {"token": WORD, "user": "bo"}, "all": [WORD]}, separators=(",", ":")
            ),
        ),
        ("{% for token in keychain.all %}{{ token | upper }}{% endfor %}", WORD.upper()),
    ],
)
def test_told_so_a_render_reveals_it(template: str, value: Any) -> None:
    assert render(template, BINDINGS, reveal_secrets=True) == Rendered(value)


def test_what_holds_no_secret_is_not_copied_even_then() -> None:
    rows = [{"a": 1}]

    outcome = render("{{ rows }}", {"rows": rows}, reveal_secrets=True)

    assert isinstance(outcome, Rendered)
    assert outcome.value is rows


@pytest.mark.parametrize(
    "template",
    [
        "{{ keychain.api.token | fromjson }}",
        "{{ keychain[keychain.api.token] + 1 }}",
        "{{ keychain.api.token + 1 }}",
        "{{ '%d' % keychain.api.token }}",
        "{{ [1].index(keychain.api.token) }}",
        "{{ now().strftime(keychain.api.token) }}",
        "{{ [1] | map(keychain.api.token) | list }}",
    ],
)
def test_an_error_of_a_revealing_render_never_quotes_it(template: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render(template, BINDINGS, reveal_secrets=True)

    assert "hunter" not in f"{raised.value} {raised.value!r}"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ nobody.at.all + 1 }}", "something in it has no value; give it a default"),
        ("{{ next_page_token + 1 }}", "its values do not go together; convert the values first"),
        ("{{ 1 / zero }}", "it divides by zero; check the divisor first"),
    ],
)
def test_an_error_of_a_revealing_render_says_what_to_do(template: str, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        render(template, BINDINGS, reveal_secrets=True)


def test_masking_goes_by_value_and_not_by_the_name_of_a_key() -> None:
    value = {"token": TOKEN, "next_page_token": "abc", "list": [TOKEN, 1]}

    assert masked(value) == {"token": MASK, "next_page_token": "abc", "list": [MASK, 1]}


def test_scrubbing_takes_out_exact_values_wherever_they_stand() -> None:
    secrets = [
        TOKEN,
        Secret("hunter2"),
        Secret('quo"te\n'),
        Secret('é"tude'),
        Secret("ab"),
        Secret(""),
    ]
    value = {
        "text": f"a {WORD} b hunter2 c",
        "json": json.dumps({"x": 'quo"te\n'}),
        "unicode": [json.dumps('é"tude'), json.dumps('é"tude', ensure_ascii=False)],
        "list": [WORD, 5, None, "ab", "about"],
        WORD: TOKEN,
        "password": "kept",
    }

    assert scrub(value, secrets) == {
        "text": "a *** b *** c",
        "json": '{"x": "***"}',
        "unicode": ['"***"', '"***"'],
        "list": [MASK, 5, None, MASK, "about"],
        MASK: MASK,
        "password": "kept",
    }


@pytest.mark.parametrize(
    "word",
    [WORD, 'a"quote\\ and\nlines', "ünïcødé-♥", "abc", "\ud800 alone", "\x7f\x1f\t/é</script>"],
)
def test_scrubbing_finds_a_secret_in_every_place_and_form(word: str) -> None:
    told = json.dumps({"inner": word})
    shown = {
        "plain": {"deep": [1, {"text": word}]},
        "escaped": [told, json.dumps({"inner": word}, ensure_ascii=False)],
        "key": {word: 1},
        "secret": [Secret(word)],
        "tuple": ({"text": word},),
        "odd": [{"text": word, "number": 10**30, "object": object}],
    }
    for value in shown.values():
        scrubbed = repr(scrub({"value": value}, [Secret(word)]))
        if len(word) >= SUBSTRING_CHARS_MIN or value not in (shown["escaped"],):
            assert MASK in scrubbed
            assert repr(word)[1:-1] not in scrubbed


def test_what_holds_no_secret_is_not_copied() -> None:
    value = {"rows": [{"text": "x" * 100}] * 10}
    assert scrub(value, [TOKEN]) is value
    assert scrub([WORD[:-1]], [TOKEN]) == [WORD[:-1]]


def test_a_long_number_that_is_a_secret_is_taken_out_and_a_short_one_is_data() -> None:
    found = scrub({"code": 987654, "port": 5432, "on": True}, [Secret("987654"), Secret("5432")])
    assert found == {"code": MASK, "port": 5432, "on": True}

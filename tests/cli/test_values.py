"""What `--set`, `--payload` and `--input` make of the words on a command line."""

from pathlib import Path
from typing import Any

import click
import pytest

from noetl.cli.references import is_file, parse_reference
from noetl.cli.values import overlaid, parse_setting, payload_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("yes", "yes"),
        ("null", None),
        ("", None),
        ("Lima", "Lima"),
        ("a: b # c", "a: b # c"),
        ("https://example.com/x?a=1", "https://example.com/x?a=1"),
        ('["a", 1]', ["a", 1]),
        ("[a, 1]", ["a", 1]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('"3"', "3"),
    ],
)
def test_a_value_means_what_it_means_in_a_playbook(text: str, value: Any) -> None:
    assert parse_setting(f"key={text}") == (["key"], value)


def test_dots_make_maps_and_later_settings_win() -> None:
    payload = payload_of(None, '{"a": {"b": 1, "c": 2}}', ["a.b=3", "a.d.e=4", "a.b=5"])
    assert payload == {"a": {"b": 5, "c": 2, "d": {"e": 4}}}


def test_the_payload_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "input.yaml"
    file.write_text("a: 1\nb: {c: 2}\n")
    assert payload_of(str(file), '{"a": 9}', ["b.d=3"]) == {"a": 9, "b": {"c": 2, "d": 3}}


def test_a_list_is_replaced_and_not_merged() -> None:
    assert overlaid({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}


@pytest.mark.parametrize(
    ("payload", "settings", "says"),
    [
        (None, ["alone"], "is not key=value"),
        (None, ["=3"], "is not key=value"),
        (None, ["a..b=3"], "is not key=value"),
        (None, ["a=[1"], "--set a:2:1: this is not YAML"),
        (None, ["a=.nan"], "not a finite number"),
        ("[1]", [], "is not a map"),
        ('{"a": ', [], "--payload:2:1: this is not YAML"),
    ],
)
def test_wrong_words_are_usage_errors(payload: str | None, settings: list[str], says: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        payload_of(None, payload, settings)
    assert says in str(refused.value)


def test_a_reference_is_a_path_with_or_without_a_version() -> None:
    assert parse_reference("guides/hello") == ("guides/hello", None)
    assert parse_reference("guides/hello@12") == ("guides/hello", 12)
    for wrong in ("guides/hello@", "@3", "guides/hello@newest"):
        with pytest.raises(click.UsageError):
            parse_reference(wrong)


def test_a_name_that_looks_like_a_file_is_meant_as_one(tmp_path: Path) -> None:
    there = tmp_path / "playbook"
    there.touch()
    assert is_file(str(there))
    assert is_file("missing.yaml")
    assert is_file("-")
    assert not is_file("guides/hello")

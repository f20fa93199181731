"""YAML to plain data: what words mean, where they stand, and what is refused."""

from typing import Any

import pytest
import yaml

from noetl.dsl import load as loading
from noetl.dsl.compose import DEPTH_MAX, NODES_MAX
from noetl.dsl.load import BYTES_MAX, load, playbook_digest
from noetl.dsl.nodes import Items, Mapping, Scalar, to_plain


def plain(text: str) -> Any:
    loaded = load(text)
    assert loaded.root is not None, loaded.problems.sorted()
    return to_plain(loaded.root)


def refusal(text: str | bytes) -> tuple[int, int, str, str]:
    (problem,) = load(text).problems.sorted()
    return problem.line, problem.column, problem.message, problem.fix


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("! 12", "12"),
        ("|\n  a\n  b", "a\nb\n"),
    ],
)
def test_words_mean_what_yaml_1_2_says(written: str, meant: object) -> None:
    value = plain(f"a: {written}\n")["a"]

    assert value == meant
    assert type(value) is type(meant)


def test_keys_that_older_yaml_took_for_booleans_stay_text() -> None:
    assert plain("on: 1\nno: 2\n5: 3\ntrue: 4\n") == {"on": 1, "no": 2, "5": 3, "true": 4}


def test_every_node_and_key_knows_its_place() -> None:
    root = load("a:\n  - b: é\n    ü: {c: 1}\n").root

    assert isinstance(root, Mapping)
    items = root.get("a")
    assert isinstance(items, Items)
    inner = items.nodes[0]
    assert isinstance(inner, Mapping)
    assert (items.line, items.column, items.path) == (2, 3, "a")
    assert (inner.line, inner.column, inner.path) == (2, 5, "a[0]")
    key = inner.entries["ü"].key
    assert (key.line, key.column, key.path) == (3, 5, "a[0].ü")
    deepest = inner.entries["ü"].value
    assert isinstance(deepest, Mapping)
    scalar = deepest.get("c")
    assert isinstance(scalar, Scalar)
    assert (scalar.line, scalar.column, scalar.path) == (3, 12, "a[0].ü.c")


def test_aliases_stand_for_their_anchor() -> None:
    assert plain("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


def test_merge_keys_fill_in_what_is_missing() -> None:
    text = "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nall: {<<: [*one, *two], a: 0}\n"

    assert plain(text)["all"] == {"a": 0, "b": 1, "c": 2}


def test_a_merge_of_something_else_is_refused() -> None:
    assert refusal("a: {<<: 5}\n") == (
        1,
        9,
        "`<<` takes keys from another mapping, and this is none",
        "give it an alias of a mapping: `<<: *defaults`",
    )


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\na: 2\n", (2, 1), "the key 'a' is already used in line 1"),
        ("{[1]: 2}", (1, 2), "a key must be text"),
        ("a: &a {b: *a}", (1, 11), "the alias *a stands inside its own anchor"),
        ("a: *b", (1, 4), "the alias *b has no anchor &b before it"),
        ("? &k {a: 1}\n: 1\n", (1, 3), "a key must be text"),
        ('"": 1', (1, 1), "the key is empty"),
        ("a: .inf", (1, 4), ".inf is not a finite number; use null"),
        ("a: 1e999", (1, 4), "the number is too large; put it in quotes to keep it as text"),
        (
            "a: 18446744073709551616",
            (1, 4),
            "the number is too large; put it in quotes to keep it as text",
        ),
        (
            "a: " + "9" * 5000,
            (1, 4),
            "the number is too large; put it in quotes to keep it as text",
        ),
        ("a: !!int x", (1, 4), "'x' is tagged !!int but is none"),
        ("a: !custom x", (1, 4), "the tag '!custom' is not known here; only plain data is allowed"),
        (
            "a: !!python/name:os.system x",
            (1, 4),
            "the tag 'tag:yaml.org,2002:python/name:os.system' is not known here;"
            " only plain data is allowed",
        ),
        (
            "a: !!set {b}",
            (1, 4),
            "the tag 'tag:yaml.org,2002:set' is not known here; only plain data is allowed",
        ),
        ("a: 1\n---\nb: 2\n", (2, 1), "a second document starts here; a file holds one playbook"),
        ("", (1, 1), "the file is empty"),
        ("# only words\n", (1, 1), "the file is empty"),
        ("a:\n\tb: 1\n", (2, 1), "a tab stands where YAML allows only spaces"),
        ("a: {{ b }}\n", (1, 4), "without quotes, YAML takes a template for a mapping"),
        ("a: 1\nb: {{ c }}/d\n", (2, 4), "without quotes, YAML takes a template for a mapping"),
        ("a: {% if b %}\n", (1, 4), "without quotes, YAML takes a template for a mapping"),
        (
            "a: 'b\nc: 1\n",
            (1, 4),
            "this is not YAML: found unexpected end of stream while scanning a quoted scalar",
        ),
        ("a: b: c\n", (1, 5), "this is not YAML: mapping values are not allowed in this context"),
        (
            "a: @b\n",
            (1, 4),
            "this is not YAML: found character that cannot start any token while"
            " scanning for the next token",
        ),
        ("a: \x07", (1, 4), "the character U+0007 is not allowed in YAML"),
        ("a: \ud800", (1, 4), "the character U+D800 is not allowed in YAML"),
        (b"a:\n  b: \xff", (2, 6), "the byte 0xff is not valid UTF-8"),
    ],
)
def test_text_that_cannot_be_read_is_explained(
    text: str | bytes, place: tuple[int, int], message: str
) -> None:
    assert refusal(text)[:3] == (*place, message)


def test_nesting_is_bounded() -> None:
    assert plain("[" * DEPTH_MAX + "]" * DEPTH_MAX) is not None
    assert refusal("[" * (DEPTH_MAX + 1))[2:] == (
        f"more than {DEPTH_MAX} levels inside each other",
        "flatten it",
    )


def test_nesting_through_aliases_is_bounded() -> None:
    half = DEPTH_MAX // 2
    lines = [f"a0: &a0 {'[' * half}{']' * half}"]
    lines += [f"a{n}: &a{n} {'[' * half}*a{n - 1}{']' * half}" for n in range(1, 4)]

    assert refusal("\n".join(lines))[2] == f"more than {DEPTH_MAX} levels inside each other"


def test_a_few_lines_cannot_stand_for_a_billion() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert refusal("\n".join(lines))[2] == f"more than {NODES_MAX} values, with aliases written out"


def test_a_file_is_bounded() -> None:
    assert refusal("#" * (BYTES_MAX + 1))[2] == (
        f"the file has {BYTES_MAX + 1} bytes; a playbook has at most {BYTES_MAX}"
    )


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    loaded = load(b"\xef\xbb\xbfa: 1\n")

    assert loaded.root is not None
    assert to_plain(loaded.root) == {"a": 1}


def test_the_digest_is_of_the_exact_bytes() -> None:
    assert playbook_digest("a: 1\n") == playbook_digest(b"a: 1\n")
    assert playbook_digest("a: 1\n") != playbook_digest("a:  1\n")
    assert playbook_digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_slow_reader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x {b: [1, 'é', !!str 2], on: no}\nc: |\n  d\ne: *x\n"
    fast = load(text).root

    monkeypatch.setattr(loading, "_LOADER", yaml.SafeLoader)

    assert load(text).root == fast

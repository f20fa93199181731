"""What a run is given on the command line: `--set`, `--payload` and `--input` as one mapping."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from noetl.cli.files import read_file
from noetl.domain.playbook.wording import nearest
from noetl.dsl.check import Checked
from noetl.dsl.load import load
from noetl.dsl.nodes import to_plain
from noetl.dsl.scalars import ScalarRefused, resolve

_COLLECTION = ("{", "[", '"', "'")


def payload_of(
    input_file: str | None, payload: str | None, settings: Sequence[str]
) -> dict[str, Any]:
    """The file first, the payload over it, single settings over both."""
    merged: dict[str, Any] = {}
    if input_file is not None:
        merged = parse_mapping(read_file(input_file), f"--input {input_file}")
    if payload is not None:
        merged = overlaid(merged, parse_mapping(payload.encode(), "--payload"))
    for setting in settings:
        keys, value = parse_setting(setting)
        merged = overlaid(merged, _nested(keys, value))
    return merged


def doubts(settings: Sequence[str], text: bytes, checked: Checked) -> list[str]:
    """Settings that a playbook neither has in its workload nor mentions: slips of the pen, likely.

    It runs all the same, because a template may make up the name that it reads.
    """
    known = {} if checked.playbook is None else checked.playbook.workload
    said = []
    for name in dict.fromkeys(parse_setting(setting)[0][0] for setting in settings):
        if name in known or re.search(rf"\b{re.escape(name)}\b".encode(), text):
            continue
        close = nearest(name, known)
        advice = f"did you mean {close}?" if close else f"it has {', '.join(known) or 'no names'}"
        said.append(f"warning: --set {name}: the playbook reads no such name; {advice}")
    return said


def missing(checked: Checked, payload: Mapping[str, Any]) -> list[str]:
    """Names that templates read and that nobody gives now: neither the playbook nor the order."""
    return [
        f"warning: nothing gives {{{{ {name} }}}}, so it is empty; give it with --set {name}=VALUE,"
        " or add it to the playbook's workload"
        for name in checked.asks_for
        if name not in payload
    ]


def parse_setting(text: str) -> tuple[list[str], Any]:
    """`a.b=3` is `["a", "b"], 3`. A value is read as in a playbook: `on` is text, `007` is 7."""
    name, equals, value = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise click.UsageError(f"--set {text!r} is not key=value; e.g. --set city=Lima")
    return keys, parse_value(value, f"--set {name}")


def parse_value(text: str, where: str) -> Any:
    """Lists, maps and quoted text as YAML or JSON; everything else as one word."""
    if text.lstrip().startswith(_COLLECTION):
        return _loaded(text.encode(), where)
    try:
        return resolve(text)
    except ScalarRefused as refused:
        raise click.UsageError(f"{where}: {refused}") from refused


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Maps are merged key by key; anything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        known = merged.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = overlaid(known, value)
        else:
            merged[key] = value
    return merged


def _nested(keys: Sequence[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    nested: dict[str, Any] = value
    return nested


def parse_mapping(data: bytes, where: str) -> dict[str, Any]:
    value = _loaded(data, where)
    if not isinstance(value, dict):
        raise click.UsageError(f'{where} is not a map; write names and values: {{"city": "Lima"}}')
    return value


def _loaded(data: bytes, where: str) -> Any:
    loaded = load(data)
    for problem in loaded.problems.sorted():
        if problem.severity == "error":
            place = f"{where}:{problem.line}:{problem.column}"
            raise click.UsageError(f"{place}: {problem.message}; {problem.fix}")
    return None if loaded.root is None else to_plain(loaded.root)

"""Loops, from plain data."""

from typing import cast

from noetl.domain.events.loop import LoopMode
from noetl.domain.playbook.loop import (
    ITERATOR,
    SHARD_RETRIES,
    Collection,
    Cursor,
    Engine,
    Fanout,
    FramePolicy,
    Loop,
)
from noetl.domain.playbook.values import Condition, Seconds
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.loops import CURSOR, FANOUT, FRAME, LOOP, LOOP_SPEC
from noetl.dsl.language.shapes import is_template
from noetl.dsl.nodes import Node, Scalar, described
from noetl.dsl.parts.values import credentials, refuse_secrets
from noetl.dsl.problems import Problems

_MILLISECONDS = 1000.0


def loop(
    node: Node | None, step_spec: Fields | None, usual: LoopMode | None, problems: Problems
) -> Loop | None:
    """The step's own `spec` may name the mode and the options of a fan-out too."""
    fields = None if node is None else read(node, LOOP, problems)
    if fields is None:
        return None
    spec_node = fields.get("spec")
    spec = None if spec_node is None else read(spec_node, LOOP_SPEC, problems)
    over = _over(fields, problems)
    mode = _text("mode", spec) or _text("loop_mode", step_spec)
    if over is None:
        return Loop(over=Collection(value=[]))  # so that arcs that wait for it are not reported too
    _check_mode(fields, over, mode, problems)
    fanout_node = _node("fanout", spec) or _node("fanout", step_spec)
    default = "cursor" if isinstance(over, Cursor) else usual or "sequential"
    return Loop(
        over=over,
        iterator=fields.text("iterator") or ITERATOR,
        mode=cast(LoopMode, mode or default),
        max_in_flight=None if spec is None else spec.count("max_in_flight"),
        frame=_frame(_node("frame", spec), problems),
        fanout=_fanout(fanout_node, problems),
        engine=cast(Engine, _text("engine", spec) or fields.text("engine") or "auto"),
        policy={} if spec is None else spec.mapping("policy"),
    )


def _text(name: str, fields: Fields | None) -> str | None:
    return None if fields is None else fields.text(name)


def _node(name: str, fields: Fields | None) -> Node | None:
    return None if fields is None else fields.get(name)


def _over(fields: Fields, problems: Problems) -> Collection | Cursor | None:
    if "in" in fields.present and "cursor" in fields.present:
        message = "a loop goes over `in` or over `cursor`, not both"
        problems.error(fields.node.entries["cursor"].key, message, "remove one of the two")
        return None
    cursor = fields.get("cursor")
    if cursor is not None:
        return _cursor(cursor, problems)
    collection = fields.get("in")
    if collection is not None:
        _check_collection(collection, problems)
        return Collection(value=fields.plain("in"))
    if "cursor" not in fields.present:
        fix = 'add `in: "{{ … }}"` with a list, or `cursor:` with SQL that claims rows'
        problems.error(fields.node, "a loop needs `in` or `cursor`", fix)
    return None


def _check_collection(node: Node, problems: Problems) -> None:
    refuse_secrets(node, problems)
    if isinstance(node, Scalar) and not (isinstance(node.value, str) and is_template(node.value)):
        message = f"a loop goes over a list, and `in` is {described(node)}"
        problems.error(node, message, 'write a list, or a template that gives one: "{{ … }}"')


def _cursor(node: Node, problems: Problems) -> Cursor | None:
    fields = read(node, CURSOR, problems)
    kind, claim = _text("kind", fields), _text("claim", fields)
    if fields is None or kind is None or claim is None:
        return None
    own = ("database", "pool")
    return Cursor(
        kind=kind,
        claim=claim,
        auth=credentials(fields.get("auth")),
        options=fields.mapping("options"),
        parameters={name: fields.plain(name) for name in own if name in fields.values},
    )


def _check_mode(
    fields: Fields, over: Collection | Cursor, mode: str | None, problems: Problems
) -> None:
    if mode is None or (mode == "cursor") == isinstance(over, Cursor):
        return
    spec = fields.get("spec") or fields.node
    if isinstance(over, Cursor):
        message = f"a loop over a cursor runs in mode cursor, not {mode}"
        problems.error(spec, message, "write `mode: cursor`, or leave it out")
    else:
        message = "mode cursor needs a cursor, and this loop goes over `in`"
        problems.error(spec, message, "write `mode: parallel`, or replace `in` by `cursor`")


def _frame(node: Node | None, problems: Problems) -> FramePolicy:
    fields = None if node is None else read(node, FRAME, problems)
    if fields is None:
        return FramePolicy()
    return FramePolicy(
        rows_max=fields.count("max_rows"),
        seconds_max=_frame_seconds(fields),
        bytes_max=fields.count("max_bytes"),
        lease_seconds=fields.seconds("lease_seconds"),
        heartbeat_seconds=fields.seconds("heartbeat_seconds"),
        row_concurrency=fields.count("row_concurrency"),
        process="frame" if fields.text("process") == "frame" else "row",
        attempts_max=fields.count("max_attempts"),
        verify_ipc=_flag("verify_ipc", fields, False),
    )


def _frame_seconds(fields: Fields) -> Seconds | None:
    written = fields.seconds("max_seconds")
    milliseconds = fields.seconds("duration_ms")
    if written is not None or milliseconds is None:
        return written
    assert isinstance(milliseconds, float)  # its shape allows no template
    return milliseconds / _MILLISECONDS


def _fanout(node: Node | None, problems: Problems) -> Fanout:
    fields = None if node is None else read(node, FANOUT, problems)
    if fields is None:
        return Fanout()
    retries = fields.count("max_shard_retries")
    return Fanout(
        fail_fast=_flag("fail_fast", fields, False),
        allow_partial=_flag("allow_partial", fields, True),
        shard_retries_max=SHARD_RETRIES if retries is None else retries,
        key=fields.text("iter_key"),
    )


def _flag(name: str, fields: Fields, otherwise: bool) -> Condition:
    node = fields.get(name)
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    return fields.flag(name, otherwise)

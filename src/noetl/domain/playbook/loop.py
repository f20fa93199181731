"""How a step repeats: over a collection or a cursor, in frames, on one engine or another."""

from typing import Any, Literal

import msgspec

from noetl.domain.events.loop import LoopMode
from noetl.domain.playbook.values import Condition, Count, Credential, Seconds

Engine = Literal["auto", "spark", "local"]

ITERATOR = "item"
SHARD_RETRIES = 2


class Collection(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """`in:` a list, or the template that will give one."""

    value: Any


class Cursor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Rows are claimed by the author's own SQL until it returns none."""

    kind: str
    claim: str
    auth: tuple[Credential, ...] = ()
    options: dict[str, Any] = {}
    parameters: dict[str, Any] = {}


class FramePolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of a frame. What is None is decided by the stage."""

    rows_max: Count | None = None
    seconds_max: Seconds | None = None
    bytes_max: Count | None = None
    lease_seconds: Seconds | None = None
    heartbeat_seconds: Seconds | None = None
    row_concurrency: Count | None = None
    process: Literal["row", "frame"] = "row"
    attempts_max: Count | None = None
    retry_mode: Literal["whole_frame"] = "whole_frame"
    verify_ipc: Condition = False


class Fanout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a failed shard means for the others."""

    fail_fast: Condition = False
    allow_partial: Condition = True
    shard_retries_max: Count = SHARD_RETRIES
    key: str | None = None  # template of `iter_key`; None: the index


class Loop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    over: Collection | Cursor
    iterator: str = ITERATOR
    mode: LoopMode = "sequential"
    max_in_flight: Count | None = None
    frame: FramePolicy = FramePolicy()
    fanout: Fanout = Fanout()
    engine: Engine = "auto"
    policy: dict[str, Any] = {}  # hints such as `exec` and `results`

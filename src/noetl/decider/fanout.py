"""What a fan-out adds to a loop: tries of its shards, their keys, and the fan-in at its end."""

from collections import Counter
from typing import Any

import msgspec

from noetl.decider.evaluate import evaluated, holds
from noetl.domain.events import FaninCompleted
from noetl.domain.events.loop import FaninStatus
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import LoopWork
from noetl.domain.execution.windows import rows_of
from noetl.domain.playbook.loop import SHARD_RETRIES, Fanout, Loop
from noetl.templates.bindings import Bindings
from noetl.templates.errors import TemplateFailed
from noetl.templates.places import Iteration, for_iteration

KEYS_BYTES_MAX = 65_536
FANIN = "fanin"
IN_DOUBT = "effect_in_doubt"
"""A shard whose effect may have fired is not tried again: only a person may decide that."""


def fanout_policy(fanout: Fanout, bindings: Bindings) -> dict[str, Any]:
    """Rendered once and recorded with the bounds of the stage."""
    return {
        "max_shard_retries": _retries(evaluated(fanout.shard_retries_max, bindings)),
        "allow_partial": holds(fanout.allow_partial, bindings),
        "failure": "fail_fast" if holds(fanout.fail_fast, bindings) else "continue",
    }


def _retries(value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or not number.is_integer():
        raise TemplateFailed(f"max_shard_retries is {value!r}; use a whole number from 0")
    return int(number)


def keys_of(loop: Loop, items: list[Any], bindings: Bindings) -> list[str]:
    """The author's own names for shards. Raises TemplateError."""
    rows = (
        Iteration(iterator=loop.iterator, item=item, index=index, total=len(items))
        for index, item in enumerate(items)
    )
    keys = [str(evaluated(loop.fanout.key, for_iteration(bindings, row))) for row in rows]
    size = len(msgspec.json.encode(keys))
    if size > KEYS_BYTES_MAX:
        raise TemplateFailed(
            f"the keys of {len(keys)} shards take {size} bytes, and {KEYS_BYTES_MAX} fit; make"
            " `iter_key` shorter, or leave it out: shards then go by their index"
        )
    (often, count), *_ = [*Counter(keys).most_common(1), ("", 0)]
    if count > 1:
        raise TemplateFailed(f"`iter_key` gives {often!r} for {count} shards; make it unique")
    return keys


def key_of(work: LoopWork, index: int) -> str:
    keys = work.policy.get("iter_keys")
    return str(keys[index]) if isinstance(keys, list) and index < len(keys) else str(index)


def is_last_try(work: LoopWork, shard_attempt: int, error: Failure) -> bool:
    """Whether a shard that failed in this try has failed for good."""
    retries = int(work.policy.get("max_shard_retries", SHARD_RETRIES))
    has_stopped = work.policy.get("failure") == "fail_fast" and work.row_error is not None
    return shard_attempt > retries or has_stopped or error.kind == IN_DOUBT


def status_of(work: LoopWork) -> FaninStatus:
    done = _done(work)
    if done == work.total:
        return "complete"
    return "partial" if done else "failed"


def fanin_completed(work: LoopWork) -> FaninCompleted:
    return FaninCompleted(
        loop_id=work.loop_id,
        status=status_of(work),
        total=work.total,
        done=_done(work),
        failed=work.rows_failed,
    )


def fanin_names(work: LoopWork) -> dict[str, Any]:
    """What templates know as `fanin`."""
    done = _done(work)
    return {
        "status": status_of(work),
        "total": work.total,
        "done": done,
        "succeeded": done,
        "failed": work.rows_failed,
        "skipped": work.total - done - work.rows_failed,
    }


def fanout_error(work: LoopWork) -> Failure | None:
    """Why the step fails: no shard is done, or not all are and the author wants all of them."""
    status = status_of(work)
    if status == "complete" or (status == "partial" and work.policy.get("allow_partial", True)):
        return None
    first = work.row_error or Failure(kind="unknown", message="it was not begun")
    words = f"{work.rows_failed} of {work.total} shards failed, the first because of"
    return msgspec.structs.replace(first, message=f"{words} {first.kind}: {first.message}")


def _done(work: LoopWork) -> int:
    return rows_of(work.outputs) - work.rows_failed

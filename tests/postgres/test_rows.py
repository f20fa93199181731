"""What is hard to put into rows: odd characters, odd ids, long names."""

import asyncpg
import pytest

from noetl.adapters.postgres.rows import number
from noetl.domain.events import CommandCompleted, PlaybookInitialized, StepEntered
from noetl.domain.events.values import Result
from noetl.domain.log import Append, Appended, AtEvent
from noetl.kernel.errors import KeyReused
from noetl.kernel.ids import CommandId, EventId, ExecutionId, StageId, StepName
from noetl.testing.histories import PLAYBOOK_DIGEST, History, execution_ids
from noetl.wire.checks import NAME_CHARACTERS_MAX
from noetl.wire.codec import open_stored
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import STEP, sealed_append, steps

FIRST, SECOND = execution_ids(2)
ODD = 'Grüße "мир" 🌍 \0\x1f\u2028 \\u0000 \\\0\\'
ODD_SHOWN = ODD.replace("\0", "\ufffd")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("7", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("9" * 30, None),
        ("007", None),
        ("-7", None),
        ("", None),
        ("stage-1", None),
        ("\u0667", None),
        (None, None),
    ],
)
def test_only_ids_that_read_back_are_numbers(text: str | None, value: int | None) -> None:
    assert number(text) == value


@pytest.mark.servers
async def test_what_sql_cannot_hold_is_in_the_bytes_all_the_same(
    open_log: OpenLog, sql: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    log = await open_log()
    history = History(FIRST)
    started = PlaybookInitialized(
        path=ODD,
        playbook_digest=PLAYBOOK_DIGEST,
        workload={ODD: [ODD, 2**63 - 1, -0.0, 1e300, {"deep": None}]},
    )
    done = CommandCompleted(claim=1, result=Result(status=ODD, context={"row": ODD}))
    append = sealed_append(
        FIRST,
        [
            history.draft(started, meta={"note": ODD}, annotations={"worker_locator": ODD}),
            history.draft(done, command_id=CommandId("c/1"), stage_id=StageId("not a number")),
        ],
    )
    (outcome,) = await log.append([append])
    assert isinstance(outcome, Appended), outcome

    stored = await log.read(FIRST)

    assert [row.canonical for row in stored] == [item.canonical for item in append.events]
    assert open_stored(stored[0]).event == started
    assert open_stored(stored[0]).annotations == {"worker_locator": ODD}
    row = await sql.fetchrow("SELECT context->>'path', meta->>'note' FROM noetl.event")
    assert tuple(row or ()) == (ODD_SHOWN, ODD_SHOWN)
    shown = "SELECT status, stage_id FROM noetl.event ORDER BY position DESC LIMIT 1"
    assert tuple(await sql.fetchrow(shown) or ()) == (ODD_SHOWN, None)


@pytest.mark.servers
async def test_an_event_of_the_largest_size_lands(open_log: OpenLog) -> None:
    log = await open_log()
    large = PlaybookInitialized(
        path="p", playbook_digest=PLAYBOOK_DIGEST, workload={"rows": ["é" * 1000] * 120}
    )
    append = sealed_append(FIRST, [History(FIRST).draft(large)])
    (outcome,) = await log.append([append])
    assert isinstance(outcome, Appended)
    (stored,) = await log.read(FIRST)
    assert stored.canonical == append.events[0].canonical


def _keyed(key: str) -> Append:
    return sealed_append(FIRST, [History(FIRST).draft(StepEntered(step=STEP), idempotency_key=key)])


@pytest.mark.servers
async def test_the_longest_names_are_taken(open_log: OpenLog) -> None:
    log = await open_log()
    longest = [_random_text(NAME_CHARACTERS_MAX, start) for start in (0x4E00, 0x1F300)]
    history = History(FIRST)
    drafts = [history.draft(StepEntered(step=STEP), idempotency_key=key) for key in longest]
    (outcome,) = await log.append([sealed_append(FIRST, drafts)])
    assert isinstance(outcome, Appended)
    (again,) = await log.append([sealed_append(FIRST, drafts)])
    assert isinstance(again, Appended)
    assert again.duplicate


@pytest.mark.servers
@pytest.mark.parametrize("name", ["", "abc", "007", "9" * 19, "9" * 30, "-1"])
async def test_ids_that_no_log_made_are_unknown(open_log: OpenLog, name: str) -> None:
    log = await open_log()
    await log.append([sealed_append(FIRST, steps(History(FIRST), 1))])
    asked = ExecutionId(name)
    assert await log.read(asked) == []
    assert (await log.head(asked)).version == 0
    assert await log.scope_of(asked) is None
    assert await log.version_at(FIRST, AtEvent(EventId(name))) is None


@pytest.mark.servers
async def test_one_key_twice_in_an_append_is_refused(open_log: OpenLog) -> None:
    log = await open_log()
    history = History(FIRST)
    drafts = [history.draft(StepEntered(step=STEP), idempotency_key="k") for _ in range(2)]
    (outcome,) = await log.append([sealed_append(FIRST, drafts)])
    assert isinstance(outcome, KeyReused)
    assert await log.tail() == []


@pytest.mark.servers
async def test_a_repeated_append_in_one_group_is_recorded_once(open_log: OpenLog) -> None:
    log = await open_log()
    other = sealed_append(SECOND, steps(History(SECOND), 4))
    first = _keyed("k")
    again = sealed_append(
        FIRST, [History(FIRST, node=9).draft(StepEntered(step=STEP), idempotency_key="k")]
    )

    outcomes = await log.append([other, first, again])

    assert outcomes == [Appended(4, 1, 4), Appended(1, 5, 5), Appended(1, 5, 5, duplicate=True)]
    assert len(await log.tail()) == 5


@pytest.mark.servers
async def test_the_same_event_id_twice_is_refused(open_log: OpenLog) -> None:
    log = await open_log()
    (draft,) = steps(History(FIRST), 1)
    await log.append([sealed_append(FIRST, [draft])])
    head = await log.head(FIRST)
    other = History(FIRST, node=5).draft(StepEntered(step=StepName("x")))

    outcomes = await log.append(
        [sealed_append(FIRST, [draft], head), sealed_append(FIRST, [other], head)]
    )

    assert [type(outcome).__name__ for outcome in outcomes] == ["DuplicateFact", "Appended"]


def _random_text(length: int, start: int) -> str:
    """Text that does not compress, so that nothing but the limit keeps it small."""
    return "".join(chr(start + at * 7919 % 700) for at in range(length))

"""Who has the frames of an execution, as the events say that handed them out: beside the state."""

from collections import OrderedDict
from collections.abc import Container
from typing import NamedTuple

from noetl.domain.events import Event, FrameAbandoned, FrameDispatched, ShardEnqueued
from noetl.domain.events.envelope import Envelope
from noetl.domain.work import FrameQuestion
from noetl.kernel.ids import FrameId, StageId, WorkerId
from noetl.kernel.instant import Instant

CLAIM = "claim"
"""In the meta of an event that hands a frame out: the question that it answers."""

QUESTIONS_MAX = 1_000

Asked = tuple[StageId, WorkerId, FrameQuestion]


class Holder(NamedTuple):
    """Who has a frame, or had it last."""

    worker_id: WorkerId | None
    attempt: int
    incarnation: int | None = None
    lease_until: Instant | None = None  # of the one that lost it, if that is still known


class Holders:
    def __init__(self) -> None:
        self._holders: dict[FrameId, Holder] = {}
        self._asked: OrderedDict[Asked, list[FrameId]] = OrderedDict()

    def hear(self, envelope: Envelope, event: Event) -> None:
        frame_id = envelope.frame_id
        if frame_id is None:
            return
        if isinstance(event, FrameDispatched | ShardEnqueued):
            self._holders[frame_id] = Holder(event.worker_id, event.attempt or 1, event.incarnation)
            self._hear_question(frame_id, envelope, event.worker_id)
        elif isinstance(event, FrameAbandoned) and frame_id in self._holders:
            lease = event.prior_lease_until
            self._holders[frame_id] = self._holders[frame_id]._replace(lease_until=lease)

    def _hear_question(
        self, frame_id: FrameId, envelope: Envelope, worker_id: WorkerId | None
    ) -> None:
        match envelope.meta.get(CLAIM):
            case [str(slot), str(index)] if envelope.stage_id and worker_id:
                asked = envelope.stage_id, worker_id, (slot, index)
                self._asked.setdefault(asked, []).append(frame_id)
                if len(self._asked) > QUESTIONS_MAX:
                    self._asked.popitem(last=False)

    def of(self, frame_id: FrameId) -> Holder | None:
        return self._holders.get(frame_id)

    def asked(self, question: Asked) -> list[FrameId]:
        """The frames that a question was answered with, if it is known."""
        return self._asked.get(question, [])

    def forget_all_but(self, frames: Container[FrameId]) -> None:
        """A question is known for longer: who asks again hears that its frame is over."""
        for frame in [frame for frame in self._holders if frame not in frames]:
            del self._holders[frame]

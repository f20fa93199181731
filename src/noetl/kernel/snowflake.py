"""Ids that rise with time and need no server: 41 bits of time, 10 of node, 12 of sequence."""

from typing import NamedTuple

from noetl.kernel.instant import Instant, from_millis, to_millis

EPOCH_MILLIS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
NODE_MAX = (1 << 10) - 1
_SEQUENCE_MAX = (1 << 12) - 1
_MILLIS_MAX = (1 << 41) - 1


class Parts(NamedTuple):
    epoch_millis: int
    node: int
    sequence: int


def compose(parts: Parts) -> str:
    millis = parts.epoch_millis - EPOCH_MILLIS
    if not 0 <= millis <= _MILLIS_MAX:
        raise ValueError(f"{parts.epoch_millis} ms is outside the range of snowflake ids")
    return str(millis << 22 | parts.node << 12 | parts.sequence)


def decompose(snowflake: str) -> Parts:
    number = int(snowflake)
    return Parts((number >> 22) + EPOCH_MILLIS, number >> 12 & NODE_MAX, number & _SEQUENCE_MAX)


def minted_at(snowflake: str) -> Instant:
    return from_millis(decompose(snowflake).epoch_millis)


def first_at(moment: Instant) -> str:
    """No id that is made from then on is below it; before there were ids it is the lowest."""
    return compose(Parts(max(EPOCH_MILLIS, to_millis(moment)), 0, 0))


class SnowflakeSequence:
    """One node's ids. Strictly rising, whatever the clock does."""

    def __init__(self, node: int) -> None:
        if not 0 <= node <= NODE_MAX:
            raise ValueError(f"node {node} is outside 0..{NODE_MAX}")
        self._node = node
        self._last = Parts(EPOCH_MILLIS, node, 0)

    def next(self, now_millis: int) -> str:
        """The next id. A clock that stands still or steps back borrows from the future."""
        millis, _, sequence = self._last
        if now_millis > millis:
            millis, sequence = now_millis, 0
        elif sequence < _SEQUENCE_MAX:
            sequence += 1
        else:
            millis, sequence = millis + 1, 0
        self._last = Parts(millis, self._node, sequence)
        return compose(self._last)

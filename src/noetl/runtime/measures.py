"""Numbers told as they happen, to whoever listens: nobody does unless a server shows them."""

from collections.abc import Callable
from typing import Literal

Measure = Literal[
    "turn_seconds",
    "group_appends",
    "group_events",
    "group_seconds",
    "command_lease_expired",
    "frame_lease_expired",
    "turn_lost",
    "claim_refused",
    "projected_events",
]
Listener = Callable[[Measure, float], None]


class Measures:
    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def tell(self, measure: Measure, value: float) -> None:
        for listener in self.listeners:
            listener(measure, value)

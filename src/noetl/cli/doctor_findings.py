"""What the doctor found, one line each."""

from typing import Literal

import msgspec

Verdict = Literal["ok", "warn", "bad"]


class Finding(msgspec.Struct, frozen=True):
    name: str
    verdict: Verdict
    message: str
    advice: str | None = None

"""One measured figure and the limit it stands beside, as a JSON line."""

import os
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent


class NoFigure(Exception):
    """What was run is not what should be measured, or took too long: the others go on."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """`ratio` is value / limit: for rates 1 is the limit, for sizes and times lower is better.

    `detail` holds what else the run showed; programs read the other fields.
    """

    name: str
    value: float
    unit: str
    limit: float
    limit_name: str
    detail: dict[str, float | str] = {}

    def line(self, commit: str) -> str:
        fields = {
            "name": self.name,
            "value": round(self.value, 3),
            "unit": self.unit,
            "limit": round(self.limit, 3),
            "limit_name": self.limit_name,
            "ratio": round(self.value / self.limit, 3),
            "commit": commit,
            "cpus": os.cpu_count(),
        }
        if self.detail:
            fields["detail"] = self.detail
        return msgspec.json.encode(fields).decode()


def commit_name() -> str:
    """The commit that was measured; `+` says that the tree had changes on top of it."""
    described = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def median(values: Sequence[float]) -> float:
    return statistics.median(values)

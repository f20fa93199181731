"""What became of results in this process, counted where it happens. The numbers only rise."""

from collections import Counter

ENCODINGS = ("inline", "feather", "json", "dataset")

TIER = "tier"
PAYLOAD = "payload"
PATHS = (TIER, PAYLOAD)
"""By their names, and by their digests as everything was stored before results had names."""

OUTCOMES = ("resolved_feather", "resolved_json", "missing", "corrupt", "unavailable", "other")


class ResultCounts:
    """Counted in the loop of the process, and read from anywhere."""

    def __init__(self) -> None:
        self.staged: Counter[str] = Counter()  # by encoding
        self.staged_bytes: Counter[str] = Counter()
        self.resolved: Counter[tuple[str, str]] = Counter()  # by path and outcome
        self.accepted: Counter[str] = Counter()  # names in reports, by what they are
        self.materialized: Counter[str] = Counter()  # by what was found or done

    def stage(self, encoding: str, byte_length: int) -> None:
        self.staged[encoding] += 1
        self.staged_bytes[encoding] += byte_length

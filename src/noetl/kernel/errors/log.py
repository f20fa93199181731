"""What can be wrong with events, the log and replaying it."""

from noetl.kernel.errors.root import NoETLError


class EventInvalid(NoETLError):
    code = "event_invalid"


class ScopeMissing(EventInvalid):
    code = "scope_missing"

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is empty; every event needs a tenant and an organization")
        self.field = field


class TimeInvalid(EventInvalid):
    code = "time_invalid"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"the time {text!r} {reason}")
        self.text = text


class NotFinite(EventInvalid):
    code = "not_finite"

    def __init__(self, path: str, value: float) -> None:
        super().__init__(f"{path} is {value}; only finite numbers can be recorded, use null")
        self.path = path


class ValueNotPlain(EventInvalid):
    code = "value_not_plain"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class FieldInvalid(EventInvalid):
    code = "field_invalid"

    def __init__(self, event_type: str, reason: str) -> None:
        super().__init__(f"{event_type}: {reason}")
        self.event_type = event_type


class EventTooLarge(EventInvalid):
    code = "event_too_large"

    def __init__(self, event_type: str, *, size_bytes: int, size_bytes_max: int) -> None:
        super().__init__(
            f"{event_type} has {size_bytes} bytes, the limit is {size_bytes_max};"
            " store the data as a payload and record its reference"
        )
        self.size_bytes = size_bytes
        self.size_bytes_max = size_bytes_max


class LogError(NoETLError):
    code = "log"


class VersionConflict(LogError):
    code = "version_conflict"
    retryable = True

    def __init__(self, stream: str, *, expected: int, actual: int) -> None:
        super().__init__(f"{stream} is at version {actual}, not {expected}; reload and try again")
        self.stream = stream
        self.expected = expected
        self.actual = actual


class DuplicateFact(LogError):
    code = "duplicate_fact"

    def __init__(self, stream: str, fact: str) -> None:
        super().__init__(f"{stream} already holds {fact}; reload, the work was done")
        self.stream = stream
        self.fact = fact


class KeyReused(LogError):
    code = "key_reused"

    def __init__(self, stream: str, key: str) -> None:
        super().__init__(
            f"{stream} recorded the idempotency key {key!r} with other events;"
            " send the same request again or choose a new key"
        )
        self.stream = stream
        self.key = key


class ChainBroken(LogError):
    code = "chain_broken"

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(f"{stream}: {reason}")
        self.stream = stream


class ScopeMismatch(LogError):
    code = "scope_mismatch"

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} belongs to another tenant or organization")
        self.stream = stream


class EventUnreadable(LogError):
    code = "event_unreadable"

    def __init__(self, event: str, reason: str) -> None:
        super().__init__(f"event {event} cannot be read: {reason}")
        self.event = event


class EventCorrupt(LogError):
    code = "event_corrupt"

    def __init__(self, event: str, *, recorded: str, actual: str) -> None:
        super().__init__(
            f"event {event} was recorded with checksum {recorded} but its bytes hash to {actual};"
            " restore the log from a backup or the archive"
        )
        self.event = event
        self.recorded = recorded
        self.actual = actual


class LogMissing(LogError):
    code = "log_missing"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds no log; go to the folder in which playbooks ran, set NOETL_HOME to its"
            " .noetl, or run one here first: noetl run FILE"
        )
        self.where = where


class LogReplaced(LogError):
    code = "log_replaced"

    def __init__(self, consumer: str, *, known: str, actual: str) -> None:
        super().__init__(
            f"the cursor of {consumer} belongs to log {known}, this is log {actual};"
            " rebuild the read models from the start of this log"
        )
        self.consumer = consumer


class LogUnavailable(LogError):
    code = "log_unavailable"
    retryable = True


class UpcasterRefused(NoETLError):
    code = "upcaster_refused"


class ReplayError(NoETLError):
    code = "replay"


class ExecutionNotFound(ReplayError):
    code = "execution_not_found"

    def __init__(self, execution: str) -> None:
        super().__init__(
            f"there is no execution {execution} here; noetl executions list shows those of this"
            " home, tenant and organization"
        )
        self.execution = execution


class CutoffInvalid(ReplayError):
    code = "cutoff_invalid"

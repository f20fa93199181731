"""What can be wrong with stores, requests, work and the servers behind them."""

from collections.abc import Mapping

from noetl.kernel.errors.root import NoETLError


class StoreUnavailable(NoETLError):
    code = "store_unavailable"
    retryable = True


class PayloadError(NoETLError):
    code = "payload"


class PayloadMissing(PayloadError):
    code = "payload_missing"

    def __init__(self, uri: str) -> None:
        super().__init__(f"nothing is stored under {uri}")
        self.uri = uri


class PayloadCorrupt(PayloadError):
    code = "payload_corrupt"

    def __init__(self, uri: str, *, expected: str, actual: str) -> None:
        super().__init__(f"{uri} should hash to {expected}, its bytes hash to {actual}")
        self.uri = uri
        self.expected = expected
        self.actual = actual


class PlaybookInvalid(NoETLError):
    code = "playbook_invalid"

    def __init__(self, problems: tuple[str, ...]) -> None:
        count = len(problems)
        shown = "\n".join(problems)
        super().__init__(f"the playbook has {count} problem{'s'[: count != 1]}:\n{shown}")
        self.problems = problems


class RequestInvalid(NoETLError):
    code = "request_invalid"


class EntryNotFound(RequestInvalid):
    code = "entry_not_found"

    def __init__(self, what: str) -> None:
        super().__init__(f"the catalogue has no {what}; register it: noetl playbooks register FILE")
        self.what = what


class StateRefuses(RequestInvalid):
    code = "state_refuses"

    def __init__(self, execution: str, reason: str) -> None:
        super().__init__(f"execution {execution} {reason}")
        self.execution = execution


class CollectionRefused(NoETLError):
    code = "collection_refused"
    retryable = True


class ClaimLost(NoETLError):
    code = "claim_lost"

    def __init__(self, work: str, reason: str) -> None:
        super().__init__(f"{work} {reason}; nothing was recorded")
        self.work = work


class FrameAlreadyTerminal(ClaimLost):
    """A frame ends once: whoever comes later is told by which event."""

    code = "frame_already_terminal"

    def __init__(self, frame: str, terminal_event_id: str) -> None:
        super().__init__(f"frame {frame}", f"ended with event {terminal_event_id}")
        self.terminal_event_id = terminal_event_id


class FrameOwnerMismatch(ClaimLost):
    """Somebody else has the frame, or nobody has it any more: who, and until when."""

    code = "frame_owner_mismatch"

    def __init__(self, frame: str, reason: str, owner: Mapping[str, str]) -> None:
        super().__init__(f"frame {frame}", reason)
        self.owner = dict(owner)


class FrameNotFound(RequestInvalid):
    code = "frame_not_found"


class StageNotFound(RequestInvalid):
    code = "stage_not_found"


class OutputNotDurable(RequestInvalid):
    code = "output_not_durable"


class StageOver(NoETLError):
    code = "stage_over"

    def __init__(self, stage: str) -> None:
        super().__init__(f"stage {stage} has no more work; its slots may go")
        self.stage = stage


class CredentialError(NoETLError):
    code = "credential"


class CredentialMissing(CredentialError):
    code = "credential_missing"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no credential {name!r}; add it: noetl credentials add {name} --type"
            " TYPE, or look for its name: noetl credentials list"
        )
        self.name = name


class CredentialUnreadable(CredentialError):
    code = "credential_unreadable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the credential {name!r} was locked with another key; set NOETL_SECRET_KEY to that"
            " key, or add the credential again"
        )
        self.name = name


class HomeInUse(NoETLError):
    code = "home_in_use"
    retryable = True

    def __init__(self, home: str, holder: str) -> None:
        super().__init__(f"{home} is in use by {holder}; wait for it, or set another NOETL_HOME")
        self.home = home


class SettingInvalid(NoETLError):
    code = "setting_invalid"


class ServerFailed(NoETLError):
    code = "server_failed"

    def __init__(self, server: str, reason: str, log_tail: str = "") -> None:
        super().__init__(f"{server} {reason}\n{log_tail}".rstrip())
        self.server = server
        self.log_tail = log_tail

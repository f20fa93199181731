"""Every error this package raises on purpose.

NoETLError
├── EventInvalid             an event is not fit for the log; nothing was written
│   ├── ScopeMissing         no tenant or no organization
│   ├── TimeInvalid          a time without a zone, or not a time at all
│   ├── NotFinite            NaN or infinity
│   ├── ValueNotPlain        a value that JSON cannot carry and give back unchanged
│   ├── FieldInvalid         a field of the wrong type, or missing
│   └── EventTooLarge        larger than an event may be; payloads belong in the payload store
├── LogError
│   ├── VersionConflict      someone else appended first; reload and decide again
│   ├── DuplicateFact        a fact that may exist once per execution exists already
│   ├── KeyReused            an idempotency key came back with other events
│   ├── ChainBroken          the events do not continue the stream they name
│   ├── ScopeMismatch        the stream belongs to another tenant or organization
│   ├── EventUnreadable      the log holds an event that this build cannot read
│   ├── EventCorrupt         stored bytes do not match their checksum
│   ├── LogMissing           there is no log where one was looked for
│   ├── LogReplaced          a cursor belongs to another log than the one it was used on
│   └── LogUnavailable       the store behind the log did not answer; try again
├── UpcasterRefused          an upcaster does not lift by exactly one version
├── ReplayError
│   ├── ExecutionNotFound    no such execution in this scope
│   └── CutoffInvalid        the point in time asked for does not exist
├── StoreUnavailable         a projection, snapshot or payload store did not answer; try again
├── PayloadError
│   ├── PayloadMissing       nothing is stored under that reference
│   └── PayloadCorrupt       stored bytes do not match their digest
├── ObjectError
│   ├── ObjectMissing        nothing is stored under that key
│   ├── ObjectDiffers        other bytes have that key already, and objects never change
│   └── ObjectKeyInvalid     not a name that every store can hold
├── PlaybookInvalid          the author's text is wrong; every problem is named
├── RequestInvalid           what was asked for makes no sense as it stands
│   ├── EntryNotFound        no such playbook in the catalogue
│   ├── NameInvalid          a noetl:// name, or a part of one, that means nothing
│   ├── PlacementMismatch    a worker would keep results where the server does not look
│   ├── StateRefuses         the execution is not in a state that allows it
│   ├── StageNotFound        no such stage in this scope
│   ├── FrameNotFound        no such frame in this scope
│   └── OutputNotDurable     an output that only memory holds
├── CollectionRefused        what is alive cannot be known now; nothing was deleted
├── ClaimLost                another holder has the work now; stop, nothing more is recorded
│   ├── FrameAlreadyTerminal the frame has ended already
│   └── FrameOwnerMismatch   somebody else holds the frame
├── StageOver                a stage has no more work for its slots, at least for now
├── CredentialError
│   ├── CredentialMissing    no credential of that name
│   └── CredentialUnreadable the stored credential was locked with another key
├── HomeInUse                another process holds the embedded state
├── SettingInvalid           a setting has an unknown name or a value out of range
├── ServerFailed             a server that we started did not start, answer or stop
├── SparkError
│   ├── JavaMissing          no Java 17 or newer on this machine
│   ├── SparkMissing         pyspark is not installed
│   ├── SparkStartFailed     no session came up
│   ├── SparkDriverLost      the process that drives Spark is gone, and its jobs with it
│   ├── SparkJobFailed       a job failed after its retries
│   └── SparkJobCancelled    a job was cancelled
└── InvariantBroken          our bug; the process must stop
"""

from noetl.kernel.errors.log import (
    ChainBroken,
    CutoffInvalid,
    DuplicateFact,
    EventCorrupt,
    EventInvalid,
    EventTooLarge,
    EventUnreadable,
    ExecutionNotFound,
    FieldInvalid,
    KeyReused,
    LogError,
    LogMissing,
    LogReplaced,
    LogUnavailable,
    NotFinite,
    ReplayError,
    ScopeMismatch,
    ScopeMissing,
    TimeInvalid,
    UpcasterRefused,
    ValueNotPlain,
    VersionConflict,
)
from noetl.kernel.errors.naming import (
    NameInvalid,
    PlacementMismatch,
)
from noetl.kernel.errors.objects import (
    ObjectDiffers,
    ObjectError,
    ObjectKeyInvalid,
    ObjectMissing,
)
from noetl.kernel.errors.root import (
    InvariantBroken,
    NoETLError,
)
from noetl.kernel.errors.service import (
    ClaimLost,
    CollectionRefused,
    CredentialError,
    CredentialMissing,
    CredentialUnreadable,
    EntryNotFound,
    FrameAlreadyTerminal,
    FrameNotFound,
    FrameOwnerMismatch,
    HomeInUse,
    OutputNotDurable,
    PayloadCorrupt,
    PayloadError,
    PayloadMissing,
    PlaybookInvalid,
    RequestInvalid,
    ServerFailed,
    SettingInvalid,
    StageNotFound,
    StageOver,
    StateRefuses,
    StoreUnavailable,
)
from noetl.kernel.errors.spark import (
    JavaMissing,
    SparkDriverLost,
    SparkError,
    SparkJobCancelled,
    SparkJobFailed,
    SparkMissing,
    SparkStartFailed,
)

__all__ = [
    "ChainBroken",
    "ClaimLost",
    "CollectionRefused",
    "CredentialError",
    "CredentialMissing",
    "CredentialUnreadable",
    "CutoffInvalid",
    "DuplicateFact",
    "EntryNotFound",
    "EventCorrupt",
    "EventInvalid",
    "EventTooLarge",
    "EventUnreadable",
    "ExecutionNotFound",
    "FieldInvalid",
    "FrameAlreadyTerminal",
    "FrameNotFound",
    "FrameOwnerMismatch",
    "HomeInUse",
    "InvariantBroken",
    "JavaMissing",
    "KeyReused",
    "LogError",
    "LogMissing",
    "LogReplaced",
    "LogUnavailable",
    "NameInvalid",
    "NoETLError",
    "NotFinite",
    "ObjectDiffers",
    "ObjectError",
    "ObjectKeyInvalid",
    "ObjectMissing",
    "OutputNotDurable",
    "PayloadCorrupt",
    "PayloadError",
    "PayloadMissing",
    "PlacementMismatch",
    "PlaybookInvalid",
    "ReplayError",
    "RequestInvalid",
    "ScopeMismatch",
    "ScopeMissing",
    "ServerFailed",
    "SettingInvalid",
    "SparkDriverLost",
    "SparkError",
    "SparkJobCancelled",
    "SparkJobFailed",
    "SparkMissing",
    "SparkStartFailed",
    "StageNotFound",
    "StageOver",
    "StateRefuses",
    "StoreUnavailable",
    "TimeInvalid",
    "UpcasterRefused",
    "ValueNotPlain",
    "VersionConflict",
]

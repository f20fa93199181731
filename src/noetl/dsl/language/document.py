"""Keys of the document itself: metadata, workload, keychain, workbook, executor."""

from noetl.dsl.language.records import WITHOUT_EFFECT, Key, Record
from noetl.dsl.language.shapes import (
    ANYTHING,
    BOOLEAN,
    LIST,
    MAP,
    NAME,
    NAMES,
    TEXT,
    TEXT_OR_NUMBER,
    choice,
    either,
    record,
    records,
)

API_VERSIONS = ("noetl.io/v2", "noetl.io/v10")
COLLECTION_MODES = ("sequential", "parallel", "fanout")
LOOP_MODES = (*COLLECTION_MODES, "cursor")

ROOT = Record(
    name="playbook",
    words="a playbook",
    keys={
        "apiVersion": Key(choice(*API_VERSIONS), "Version of the language.", required=True),
        "kind": Key(choice("Playbook"), "What this document is.", required=True),
        "metadata": Key(record("metadata"), "Name and place in the catalogue.", required=True),
        "workload": Key(MAP, "Default inputs; a request may override them."),
        "keychain": Key(records("keychain_entry"), "Secrets to look up when an execution starts."),
        "workbook": Key(records("workbook_task"), "Tasks that steps use by name."),
        "executor": Key(record("executor"), "Where it runs and where it starts."),
        "workflow": Key(records("step"), "The steps, at least one.", required=True),
    },
    unknown="kept",
    retired={
        "vars": "put defaults under `workload`, and values of a run under `set`",
        "steps": "call the list of steps `workflow`",
        "name": "put the name under `metadata`",
        "path": "put the path under `metadata`",
    },
    ignored=frozenset({"tracing"}),
)

METADATA = Record(
    name="metadata",
    words="metadata",
    keys={
        "name": Key(NAME, "What the playbook is called.", required=True),
        "path": Key(NAME, "Its key in the catalogue."),
        "description": Key(TEXT, "What it does."),
        "version": Key(TEXT_OR_NUMBER, "The author's own version."),
        "tags": Key(either(TEXT, NAMES), "Words to find it by."),
        "labels": Key(MAP, "Names and values to find it by."),
        "exposes_as_mcp": Key(ANYTHING, "Whether agents may call it."),
        "exposed_in_ui": Key(ANYTHING, "Whether the UI offers it."),
        "agent": Key(ANYTHING, "How agents see it."),
        "capabilities": Key(ANYTHING, "What it can do for agents."),
    },
    unknown="kept",
)

EXECUTOR = Record(
    name="executor",
    words="executor",
    keys={
        "profile": Key(choice("auto", "local", "distributed"), "Where it wants to run."),
        "version": Key(TEXT_OR_NUMBER, "The runtime it was written for."),
        "requires": Key(
            MAP,
            WITHOUT_EFFECT,
            hint="tools that are not there are told by the checker, for each task",
        ),
        "spec": Key(record("executor_spec"), "Where it starts and ends."),
    },
)

EXECUTOR_SPEC = Record(
    name="executor_spec",
    words="executor.spec",
    keys={
        "entry_step": Key(NAME, "The first step; else `start`, else the first in the list."),
        "final_step": Key(
            NAME,
            WITHOUT_EFFECT,
            hint="an execution ends when nothing is left to run, whatever ran last",
        ),
        "no_next_is_error": Key(
            BOOLEAN,
            WITHOUT_EFFECT,
            hint="a step without `next` ends its branch",
            usual="false",
        ),
        "loop_mode": Key(choice(*COLLECTION_MODES), "For loops over `in` that name no mode."),
        "policy": Key(
            MAP,
            WITHOUT_EFFECT,
            hint="write `spec.timeout` on a step, rules on a tool, and `output` for what is kept",
        ),
    },
)

_SCOPES = ("local", "global", "shared", "catalog")

KEYCHAIN_KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "secrets": (("map",),),
    "secret_manager": (("map",),),
    "oauth2": (("endpoint",),),
    "credential": (("credential",),),
    "credential_ref": (("credential",),),
    "bearer": (("token",),),
    "static": (("map",),),
    "google_id_token": (
        ("service_account_secret", "service_account_credential"),
        ("target_audience",),
    ),
}
KEYCHAIN_KINDS_OF_OTHERS = frozenset({"google_id_token"})
KEYCHAIN_LEGACY: tuple[tuple[str, ...], ...] = (("ref",),)

_ANYWHERE = "a secret is used wherever a worker runs the task that asks for it"

KEYCHAIN_ENTRY = Record(
    name="keychain_entry",
    words="an entry of the keychain",
    keys={
        "name": Key(NAME, "Read as `{{ keychain.<name>.<field> }}`.", required=True),
        "kind": Key(
            choice(*KEYCHAIN_KINDS),
            "How the secret is found; `google_id_token` is of other engines and fails here.",
        ),
        "scope": Key(
            choice(*_SCOPES),
            "Of other engines, without effect: a value is looked up by those who use it.",
            hint="a value is looked up by those who use it, and each execution asks with its own",
            usual="local",
        ),
        "auto_renew": Key(BOOLEAN, "Fetch again before it expires."),
        "auth": Key(ANYTHING, "The credential that may read the secret."),
        "provider": Key(TEXT, "The secret manager, such as gcp."),
        "map": Key(MAP, "Field -> path of the secret, or its literal value."),
        "endpoint": Key(TEXT, "Where tokens are issued."),
        "method": Key(TEXT, "HTTP method for the endpoint."),
        "headers": Key(MAP, "HTTP headers for the endpoint."),
        "data": Key(ANYTHING, "What is sent to the endpoint."),
        "credential": Key(TEXT, "The stored credential."),
        "token": Key(TEXT, "A literal token."),
        "service_account_secret": Key(TEXT, "Path of the service account's key."),
        "service_account_credential": Key(TEXT, "Stored credential of the service account."),
        "target_audience": Key(TEXT, "Who the token is for."),
        "type": Key(TEXT, "Legacy: the kind of secret."),
        "ref": Key(TEXT, "Legacy: the stored credential."),
        "region": Key(TEXT, WITHOUT_EFFECT, hint=_ANYWHERE),
        "residency": Key(
            choice("none", "advisory", "strict"),
            "Of other engines, without effect: nothing here keeps it.",
        ),
        "allowed_regions": Key(LIST, WITHOUT_EFFECT, hint=_ANYWHERE),
        "no_broker_fallback": Key(
            BOOLEAN,
            WITHOUT_EFFECT,
            hint="no other region is asked for a secret",
        ),
    },
    unknown="suspected",
)

WORKBOOK_TASK = Record(
    name="workbook_task",
    words="a workbook task",
    keys={
        "name": Key(NAME, "What steps call it.", required=True),
        "tool": Key(record("task"), "The tool and its default inputs.", required=True),
        "desc": Key(TEXT, "What it does.", aliases=("description", "title")),
    },
    retired={
        "kind": "put kind, code and inputs under `tool`",
        "type": "write `tool: {kind: …}`",
        "code": "put kind, code and inputs under `tool`",
    },
)

"""Every tool kind: its parameters, and which of them it cannot do without."""

import msgspec

from noetl.dsl.language.records import Key, Record, Unknown
from noetl.dsl.language.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    LIST,
    MAP,
    NAME,
    SECONDS,
    TEXT,
    TEXT_OR_NUMBER,
    Shape,
    either,
)
from noetl.dsl.language.tasks import EVERY_TASK, RETIRED_TASK_KEYS

_TEXT_OR_LIST = either(TEXT, LIST)
_TEXT_OR_MAP = either(TEXT, MAP)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    parameters: dict[str, Key] = {}
    needs: tuple[tuple[str, ...], ...] = ()
    runs: bool = True  # False: part of the language, but this engine has no such tool
    unknown: Unknown = "suspected"


def _keys(shape: Shape, *names: str) -> dict[str, Key]:
    return {name: Key(shape, "") for name in names}


_SQL = {
    "query": Key(
        _TEXT_OR_LIST,
        "The SQL; several statements may follow each other.",
        aliases=("command", "cmd", "sql"),
    ),
    "commands": Key(_TEXT_OR_LIST, "Statements, one by one.", aliases=("queries",)),
    "query_b64": Key(TEXT, "The SQL in base64.", aliases=("command_b64",)),
    "commands_b64": Key(_TEXT_OR_LIST, "Statements in base64.", aliases=("queries_b64",)),
    "script": Key(MAP, "Where the SQL is: `{uri, source}`."),
    "params": Key(either(MAP, LIST, TEXT), "Values for placeholders."),
}
_SQL_NEEDS = (("query", "commands", "query_b64", "commands_b64", "script"),)
_CONNECTION = _keys(
    TEXT_OR_NUMBER,
    "db_host",
    "db_port",
    "db_user",
    "db_password",
    "db_name",
    "sslmode",
    "host",
    "port",
    "user",
    "password",
    "schema",
)

KINDS: dict[str, Kind] = {
    "python": Kind(
        text="Run Python code; its result is `result`, or what `main` returns.",
        parameters={
            "code": Key(TEXT, "The code."),
            "script": Key(MAP, "Where the code is: `{uri, source}`."),
            "libs": Key(either(MAP, LIST), "Modules to import, by alias."),
            "env": Key(MAP, "Environment of the code."),
            "cwd": Key(TEXT, "Folder to run in."),
            "tables": Key(TEXT, "`arrow`: lists of records arrive as Arrow tables."),
        },
        needs=(("code", "script"),),
    ),
    "http": Kind(
        text="Call an HTTP endpoint.",
        parameters={
            "url": Key(TEXT, "Where to.", aliases=("endpoint",)),
            "method": Key(TEXT, "GET unless said otherwise."),
            "headers": Key(_TEXT_OR_MAP, "Headers."),
            "params": Key(_TEXT_OR_MAP, "Query parameters; empty ones are left out."),
            **_keys(ANYTHING, "json", "payload", "body", "data", "form"),
            "verify_ssl": Key(FLAG, "Check the certificate."),
            "follow_redirects": Key(FLAG, "Follow redirects."),
            "response_type": Key(TEXT, "How the body is read."),
        },
        needs=(("url",),),
    ),
    "postgres": Kind(
        text="Run SQL on PostgreSQL.",
        parameters=_SQL | _CONNECTION | {"pool": Key(MAP, "Connection pool.")},
        needs=_SQL_NEEDS,
    ),
    "duckdb": Kind(
        text="Run SQL on DuckDB; steps of one execution share their tables.",
        parameters=_SQL
        | {
            "database": Key(TEXT, "A file, or `:memory:`.", aliases=("db_path",)),
            "gcs_credential": Key(TEXT, "Credential for `gs://` paths."),
            "tables": Key(MAP, "Rows to query as tables, by their names."),
        },
        needs=_SQL_NEEDS,
    ),
    "sqlite": Kind(
        text="Run SQL on a SQLite file.",
        parameters=_SQL | {"database": Key(TEXT, "The file.", aliases=("db_path",))},
        needs=_SQL_NEEDS,
    ),
    "shell": Kind(
        text="Run commands; the first that fails stops.",
        parameters={
            "cmds": Key(_TEXT_OR_LIST, "The commands.", aliases=("command", "commands")),
            "env": Key(MAP, "Environment of the commands."),
            "cwd": Key(TEXT, "Folder to run in."),
            "shell": Key(ANYTHING, "Which shell."),
        },
        needs=(("cmds",),),
    ),
    "noop": Kind(
        text="Do nothing; policy and `set` still apply.",
        parameters=_keys(ANYTHING, "result", "message"),
    ),
    "playbook": Kind(
        text="Run another playbook and wait for it.",
        parameters={
            "path": Key(TEXT, "Its key in the catalogue."),
            "catalog_id": Key(TEXT_OR_NUMBER, "Its id in the catalogue."),
            "version": Key(TEXT_OR_NUMBER, "Which version; without it, the newest."),
            "input": Key(_TEXT_OR_MAP, "Its workload.", aliases=("args", "payload", "workload")),
            "return_step": Key(
                TEXT, "The step whose result is returned.", aliases=("result_step",)
            ),
            "return_result": Key(FLAG, "Return the result of that step."),
            "wait": Key(FLAG, "false: start it and go on."),
            "poll_interval": Key(SECONDS, "Kept as written; nothing polls."),
        },
        needs=(("path", "catalog_id"),),
    ),
    "wait": Kind(
        text="Wait; alone in its step it needs no worker and outlives every restart.",
        parameters={
            "seconds": Key(SECONDS, "How long."),
            "until": Key(TEXT, "An instant with its zone, such as 2030-01-31T08:00:00Z."),
        },
        needs=(("seconds", "until"),),
    ),
    "workbook": Kind(
        text="Run a task of the workbook.",
        parameters={"name": Key(TEXT, "Its name in `workbook`.", required=True)},
    ),
    "nats": Kind(
        text="Read and write NATS: key-value, objects, streams.",
        parameters={
            "operation": Key(TEXT, "Such as kv_get or js_publish."),
            "value": Key(ANYTHING, ""),
            "data": Key(ANYTHING, ""),
            "headers": Key(_TEXT_OR_MAP, ""),
            **_keys(TEXT, "url", "user", "password", "token", "bucket", "key", "pattern", "name"),
            **_keys(TEXT, "encoding", "stream", "subject", "consumer"),
            **_keys(TEXT_OR_NUMBER, "ttl", "seq", "batch", "timeout_ms"),
            **_keys(FLAG, "last", "ack"),
        },
        needs=(("operation",),),
    ),
    "artifact": Kind(
        text="Read or write a stored result.",
        parameters={
            "action": Key(TEXT, "get or put."),
            "result_ref": Key(_TEXT_OR_MAP, "Reference of the result."),
            **_keys(TEXT, "uri", "prefer"),
            "data": Key(ANYTHING, "What is put."),
        },
        needs=(("action",), ("result_ref", "uri", "input")),
    ),
    "result_fetch": Kind(
        text="Read a stored result.",
        parameters=_keys(_TEXT_OR_MAP, "ref", "prefer"),
        needs=(("ref",),),
    ),
    "transfer": Kind(
        text="Copy rows from one place to another.",
        parameters={
            "source": Key(MAP, "Where rows come from."),
            "target": Key(MAP, "Where they go."),
            "chunk_size": Key(COUNT, "Rows at once."),
            "mode": Key(TEXT, "append, replace or upsert."),
            "mapping": Key(MAP, "Column -> field."),
        },
        needs=(("source",), ("target",)),
    ),
    "secrets": Kind(
        text="Look a secret up.",
        parameters=_keys(TEXT, "provider", "name", "path", "version"),
        needs=(("name", "path"),),
    ),
    "spark": Kind(
        text="Run SQL or a PySpark function over datasets, tables and files.",
        parameters={
            "query": Key(TEXT, "The SQL.", aliases=("sql",)),
            "code": Key(TEXT, "Code that defines the function."),
            "function": Key(NAME, "The function's name."),
            "datasets": Key(MAP, "Name -> result, table or file.", aliases=("tables", "inputs")),
            "write": Key(_TEXT_OR_MAP, "Where rows go instead: `{format, path, mode}`."),
            "options": Key(MAP, "Options of the session."),
            "libs": Key(either(MAP, LIST), "Modules to import."),
        },
        needs=(("query", "code", "function"),),
        unknown="kept",
    ),
}
KINDS["resolve"] = KINDS["result_fetch"]

_ELSEWHERE = {
    "ducklake": (("query", "commands"),),
    "snowflake": (("query", "commands"),),
    "snowflake_transfer": (),
    "container": (("image",),),
    "script": (("script",),),
    "gcs": (("source",), ("destination",)),
    "subscription": (("source",),),
    "agent": (),
    "mcp": (),
    "gateway": (),
    "rhai": (),
    "wasm": (),
}
KINDS |= {
    name: Kind(
        text="Part of the language; this engine has no such tool.",
        parameters=_SQL if needs == (("query", "commands"),) else _keys(ANYTHING, "args"),
        needs=needs,
        runs=False,
        unknown="kept",
    )
    for name, needs in _ELSEWHERE.items()
}

RUNNING_KINDS = tuple(name for name, kind in KINDS.items() if kind.runs and name != "resolve")


def _record(name: str, kind: Kind) -> Record:
    """The keys of every task, unless the kind uses the same word for something else."""
    own = kind.parameters
    shared = {
        word: msgspec.structs.replace(
            key, aliases=tuple(alias for alias in key.aliases if alias not in own)
        )
        for word, key in EVERY_TASK.items()
        if word not in own
    }
    return Record(
        name=f"{name}_task",
        words=f"{'an' if name[0] in 'aeioh' else 'a'} {name} tool",
        keys=shared | own,
        unknown=kind.unknown,
        retired={} if not kind.runs else RETIRED_TASK_KEYS,
        needs=kind.needs,
    )


KIND_RECORDS = {name: _record(name, kind) for name, kind in KINDS.items()}

_OTHER = Kind(text="A tool of another package.", unknown="kept")


def kind_of(name: str) -> Kind:
    """A tool of another package has whatever parameters it wants."""
    return KINDS.get(name, _OTHER)


def record_of(name: str) -> Record:
    return KIND_RECORDS[name] if name in KIND_RECORDS else _record(name, _OTHER)

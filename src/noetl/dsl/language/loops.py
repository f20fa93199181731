"""Keys of a loop: what it goes over, how many at once, in what frames."""

from noetl.dsl.language.document import LOOP_MODES
from noetl.dsl.language.records import WITHOUT_EFFECT, Key, Record
from noetl.dsl.language.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    MAP,
    MILLISECONDS,
    NAME,
    SECONDS,
    TEXT,
    choice,
    record,
    whole,
)

ENGINES = ("auto", "spark", "local")
CURSOR_KINDS = ("postgres", "sqlite", "duckdb")

LOOP = Record(
    name="loop",
    words="a loop",
    keys={
        "in": Key(ANYTHING, "A list, or a template that gives one."),
        "cursor": Key(record("cursor"), "Rows claimed by SQL, until there are none."),
        "iterator": Key(NAME, "What one item is called; without it, `item`."),
        "spec": Key(record("loop_spec"), "Mode, concurrency, frames."),
        "engine": Key(choice(*ENGINES), "Where the rows run."),
    },
    retired={
        "mode": "put `mode` under `spec`",
        "max_in_flight": "put `max_in_flight` under `spec`",
        "frame": "put `frame` under `spec`",
        "frame_policy": "put `frame` under `spec`",
        "fanout": "put `fanout` under `spec`",
        "collection": "call it `in`",
        "items": "call it `in`",
        "element": "call it `iterator`",
        "as": "call it `iterator`",
    },
)

LOOP_SPEC = Record(
    name="loop_spec",
    words="spec of a loop",
    keys={
        "mode": Key(choice(*LOOP_MODES), "sequential unless said otherwise."),
        "max_in_flight": Key(COUNT, "Rows at once; for a cursor, slots."),
        "frame": Key(record("frame"), "Bounds of a frame.", aliases=("frame_policy",)),
        "fanout": Key(record("fanout"), "For mode fanout."),
        "engine": Key(choice(*ENGINES), "Where the rows run."),
        "policy": Key(MAP, "Hints such as `exec` and `results`."),
    },
)

CURSOR = Record(
    name="cursor",
    words="a cursor",
    keys={
        "kind": Key(choice(*CURSOR_KINDS), "The database.", required=True),
        "claim": Key(TEXT, "SQL that claims rows and returns them.", required=True),
        "auth": Key(ANYTHING, "The stored credential.", aliases=("credential",)),
        "options": Key(MAP, "Such as `max_iterations`."),
        "database": Key(TEXT, "File of a SQLite or DuckDB database.", aliases=("db_path", "path")),
        "pool": Key(MAP, "Connection pool."),
    },
)

FRAME = Record(
    name="frame",
    words="a frame policy",
    keys={
        "max_rows": Key(COUNT, "Rows in a frame.", aliases=("size",)),
        "max_seconds": Key(SECONDS, "No row is started after this."),
        "duration_ms": Key(MILLISECONDS, "`max_seconds` in milliseconds."),
        "max_bytes": Key(COUNT, "Bytes of output in a frame.", aliases=("memory_bytes",)),
        "lease_seconds": Key(SECONDS, "How long a slot may be silent."),
        "heartbeat_seconds": Key(
            SECONDS, "A slot says that it lives as often as this, or every 2 s if this is longer."
        ),
        "row_concurrency": Key(COUNT, "Rows at once in a frame.", aliases=("parallelism",)),
        "process": Key(choice("row", "frame"), "Run the pipeline per row or per frame."),
        "max_attempts": Key(COUNT, "How often a frame is handed out."),
        "retry_mode": Key(choice("whole_frame"), "What is done again."),
        "verify_ipc": Key(
            FLAG,
            WITHOUT_EFFECT,
            hint="shared memory is known by digest, length and tenant; no frame reads it twice",
            usual="false",
        ),
    },
)

FANOUT = Record(
    name="fanout",
    words="fanout",
    keys={
        "fail_fast": Key(FLAG, "Stop at the first failed shard."),
        "allow_partial": Key(FLAG, "Go on when some shards failed."),
        "max_shard_retries": Key(
            whole(0), "How often a failed shard is tried again.", aliases=("max_job_retries",)
        ),
        "iter_key": Key(TEXT, "Template of a shard's key; without it, the index."),
    },
)

"""Names, filters and tests that templates have from the engine, without a playbook saying so.

The engine has them in a room that this one may not look into; a test keeps the two lists alike.
"""

from noetl.domain.playbook.rules import RESERVED_NAMES

FUNCTIONS = frozenset(
    {"dict", "namespace", "now", "random", "range", "timestamp", "utcnow", "uuid", "uuid4"}
)

ROW_NAMES = frozenset(
    {"_first", "_frame_index", "_frame_row_index", "_index", "_last", "_total"},
)
"""Where a row stands: by themselves, and under `iter`."""

WORKLOAD_NAMES = FUNCTIONS | {
    "catalog_id",
    "env",
    "execution_id",
    "input",
    "job",
    "parent_execution_id",
    "path",
    "payload",
    "version",
}
"""All that is known when the workload itself is rendered."""

ENGINE_NAMES = (
    RESERVED_NAMES
    | WORKLOAD_NAMES
    | ROW_NAMES
    | {
        "__frame_max_rows",
        "__frame_policy",
        "__worker_slot_id",
        "loop_index",
        "response",
        "result",
    }
)

FILTERS = frozenset(
    {
        *("abs", "b64decode", "b64encode", "batch", "capitalize", "center", "count", "d"),
        *("default", "dictsort", "first", "float", "format", "from_json", "fromjson", "get"),
        *("groupby", "indent", "int", "items", "join", "keys", "last", "len", "length", "list"),
        *("lower", "map", "max", "min", "random", "reject", "rejectattr", "replace", "reverse"),
        *("round", "safe", "select", "selectattr", "sort", "split", "string", "sum", "title"),
        *("to_json", "tojson", "trim", "truncate", "unique", "upper", "urlencode", "values"),
        "wordcount",
    }
)

FILTERS_OF_OTHERS = {
    "encrypt_secret": "leave it out: values of the `keychain` are hidden wherever they go",
}
"""What other engines have -> what to write instead."""

TESTS = frozenset(
    {
        *("boolean", "defined", "divisibleby", "eq", "equalto", "even", "false", "float", "ge"),
        *("greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan", "lt", "mapping"),
        *("ne", "none", "number", "odd", "sequence", "string", "true", "undefined"),
    }
)

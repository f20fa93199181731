"""What the names of a spark task stand for: results, rows, files and tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from noetl.domain.naming.locator import SCHEME
from noetl.domain.naming.result_name import is_result_uri, parse_results
from noetl.domain.playbook.wording import choices, shown
from noetl.kernel.scope import Scope
from noetl.ports.spark_jobs import SparkInput, SparkWrite
from noetl.ports.tool import ToolCall
from noetl.templates.table_rows import TableRows
from noetl.tools.failures import failed

ROWS_BYTES_MAX: Final = 16 * 1024 * 1024
"""More rows than this are better named than sent."""

_FORMATS: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".orc": "orc",
    ".txt": "text",
}
_MODES: Final = ("append", "overwrite", "ignore", "error")
_ROWS_IN: Final = ("results", "rows", "data")
"""Where the rows are in the result of a loop, or of SQL."""


def inputs_of(call: ToolCall, base: Path) -> list[SparkInput]:
    given = call.parameters.get("datasets") or {}
    if not isinstance(given, Mapping):
        raise failed("client_error", "`datasets` is not a map; write `name: '{{ step }}'`")
    return [_input(str(name), value, call.scope, base) for name, value in given.items()]


def write_of(given: Any, base: Path) -> SparkWrite | None:
    if given is None:
        return None
    if isinstance(given, str):
        given = {"path": given}
    if not isinstance(given, Mapping) or bool(given.get("path")) == bool(given.get("table")):
        raise failed("client_error", "`write` needs a path or a table: {format, path, mode}")
    mode = str(given.get("mode") or "error")
    if mode not in _MODES:
        raise failed("client_error", f"`write.mode` is {shown(mode)!r}; use {choices(_MODES)}")
    path = _placed(str(given["path"]), base) if given.get("path") else None
    by = given.get("partition_by") or []
    return SparkWrite(
        format=str(given.get("format") or _format_of(path or "")),
        path=path,
        table=None if path is not None else str(given["table"]),
        mode=mode,
        partition_by=[by] if isinstance(by, str) else list(by),
        options=texts_of(given.get("options"), "write.options"),
    )


def texts_of(given: Any, what: str) -> dict[str, str]:
    """Spark's options are text: `true`, not True."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise failed("client_error", f"`{what}` is not a map; write `name: value`")
    return {str(name): _text(value) for name, value in given.items()}


def _input(name: str, value: Any, scope: Scope, base: Path) -> SparkInput:
    if isinstance(value, TableRows):
        assert value.reference is not None, "a table is stored before it is passed on"
        proof = {"reference": msgspec.json.encode(value.reference).decode()}
        return SparkInput(name=name, result=value.reference.uri, options=proof)
    if isinstance(value, str):
        return _named(name, value, {}, scope, base)
    if isinstance(value, Mapping) and ("path" in value or "table" in value):
        return _described(name, value, scope, base)
    if isinstance(value, Mapping):
        rows = next((value[key] for key in _ROWS_IN if key in value), None)
        value = [value] if rows is None else rows
        if isinstance(value, TableRows):
            return _input(name, value, scope, base)
    if not isinstance(value, list):
        kind = type(value).__name__
        raise failed("schema", f"{name!r} is a {kind}; give it a result, rows, or {{format, path}}")
    if len(msgspec.json.encode(value)) > ROWS_BYTES_MAX:
        raise failed(
            "schema",
            f"the rows of {name!r} are too many to be sent; name them: '{{{{ step._ref }}}}'",
        )
    return SparkInput(name=name, rows=value)


def _described(name: str, value: Mapping[str, Any], scope: Scope, base: Path) -> SparkInput:
    options = texts_of(value.get("options"), f"datasets.{name}.options")
    if "table" in value:
        return SparkInput(name=name, table=str(value["table"]))
    found = _named(name, str(value["path"]), options, scope, base)
    if found.result is None and value.get("format"):
        return msgspec.structs.replace(found, format=str(value["format"]))
    return found


def _named(name: str, text: str, options: dict[str, str], scope: Scope, base: Path) -> SparkInput:
    """A result, or files. Another tenant's result is not there for this one."""
    if not text.startswith(SCHEME):
        return SparkInput(
            name=name, format=_format_of(text), path=_placed(text, base), options=options
        )
    if not is_result_uri(text) or parse_results(text).scope != scope:
        raise failed("missing_reference", f"nothing is stored under {shown(text)!r}")
    return SparkInput(name=name, result=text, options=options)


def _format_of(path: str) -> str:
    return _FORMATS.get(Path(path).suffix, "parquet")


def _placed(path: str, base: Path) -> str:
    return path if "://" in path else str((base / path).absolute())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Functions of playbooks, called inside the driver's process: apart from the one with the log."""

import importlib
import linecache
from collections.abc import Mapping
from typing import Any

from noetl.kernel.errors import RequestInvalid
from noetl.ports.spark_jobs import SparkOrder

MAIN = "main"


class JobStopped(BaseException):  # not to be caught by `except Exception`
    """Raised inside a function that nobody wants any more."""


def called(order: SparkOrder, session: Any, given: Mapping[str, Any]) -> Any:
    """What `main(spark, **inputs)` returns. Whatever it raises comes out."""
    try:
        return _function(order)(session, **given)
    except SystemExit as error:
        raise RuntimeError(f"the code ended its process with {error.code!r}; return") from error


def _function(order: SparkOrder) -> Any:
    if order.code is None:
        return _imported(order.function or "")
    file = "<playbook>"
    # So that a traceback shows the lines.
    lines = order.code.splitlines(keepends=True)
    linecache.cache[file] = (len(order.code), None, lines, file)
    names: dict[str, Any] = {"__name__": "__playbook__"}
    for name, module in order.libs.items():
        names[name] = importlib.import_module(module)
    exec(compile(order.code, file, "exec"), names)
    function = names.get(order.function or MAIN)
    if not callable(function):
        wanted = order.function or MAIN
        raise RequestInvalid(f"the code has no function {wanted!r}; write def {wanted}(spark, …)")
    return function


def _imported(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise RequestInvalid(f"{path!r} is no function; give code, or package.module.function")
    return getattr(importlib.import_module(module), name)

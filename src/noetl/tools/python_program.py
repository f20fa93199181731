"""Run a task's code and find its result.

Runs in the process of the code: standard library only, and as little of it as possible.
"""

import json
import sys
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

MODULE_NAME = "playbook_task"  # not __main__: code that calls its own main would run it twice
PROGRAMS_MAX = 64
_TASK, _RETURNED = "__task__", "__returned__"
_MISSING = object()


class CodeRefused(Exception):
    """What is wrong with a task besides the errors that its code raises."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def run(request: dict[str, Any]) -> Any:
    """The result: `result`, a top-level `return`, what `main` returns, or that all went well."""
    given = request["input"]
    program = compiled(request["code"], request["file"])
    module = ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module  # dataclasses and type hints look their module up
    names = module.__dict__
    names.update(json=json, context=request["context"], args=given, input_data=given)
    names.update(given)
    _import_libraries(names, request["libs"])
    try:
        exec(program, names)
    except SystemExit as leaving:
        if leaving.code:
            raise
    return _result(names, given)


def may_hold_table(result: Any) -> bool:
    """Whether it is worth asking the module that knows Arrow."""
    if "pyarrow" not in sys.modules and not hasattr(result, "__arrow_c_stream__"):
        return isinstance(result, dict) and any(
            hasattr(item, "__arrow_c_stream__") for item in result.values()
        )
    return not isinstance(result, str | int | float | list | type(None))


def _result(names: dict[str, Any], given: dict[str, Any]) -> Any:
    if "result" in names and names["result"] is not given.get("result", _MISSING):
        return names["result"]
    if names.get(_RETURNED) is not None:
        return names[_RETURNED]
    main = names.get("main")
    if callable(main) and "main" not in given:
        return _call_main(main, names, given)
    if "result" in names:
        return names["result"]  # of the input, perhaps changed in place
    return {"status": "ok", "message": "the code ran and set no result"}


def _call_main(main: Any, names: dict[str, Any], given: dict[str, Any]) -> Any:
    import inspect  # noqa: PLC0415 - slow to import, and not all code has a main

    offered = {name: names[name] for name in ("args", "context", "input_data")} | given
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    missing: list[str] = []
    for name, parameter in inspect.signature(main).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            keywords = {**given, **keywords}
        elif parameter.kind is parameter.VAR_POSITIONAL:
            continue
        elif name not in offered:
            missing += [name] if parameter.default is parameter.empty else []
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(offered[name])
        else:
            keywords[name] = offered[name]
    if missing:
        raise CodeRefused(
            "client_error",
            f"main needs {', '.join(missing)}, which the input does not have;"
            f" it has: {', '.join(given) or 'nothing'}",
        )
    returned = main(*positional, **keywords)
    return _awaited(returned) if inspect.isawaitable(returned) else returned


def _awaited(returned: Any) -> Any:
    import asyncio  # noqa: PLC0415 - slow to import, and most code is not async

    async def wait() -> Any:
        return await returned

    return asyncio.run(wait())


def _import_libraries(names: dict[str, Any], libraries: Any) -> None:
    if isinstance(libraries, str):
        libraries = [libraries]
    if isinstance(libraries, list):
        for name in libraries:
            _imported(name)
            top = name.partition(".")[0]
            names[top] = sys.modules[top]
        return
    for alias, wanted in (libraries or {}).items():
        names[alias] = _library(alias, wanted)


def _library(alias: str, wanted: Any) -> Any:
    if isinstance(wanted, dict):
        source, name = wanted.get("from"), wanted.get("import")
        if name is None:
            return _imported(source)
        module = _imported(source)
        return getattr(module, name) if hasattr(module, name) else _imported(f"{source}.{name}")
    return _imported(wanted if wanted else alias)


def _imported(name: Any) -> ModuleType:
    if not isinstance(name, str):
        raise CodeRefused(
            "client_error",
            "libs must be a list of module names, or alias: module, or"
            " alias: {from: module, import: name}",
        )
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        raise CodeRefused(
            "not_found", f"libs: there is no module {error.name}; install it where workers run"
        ) from error
    return sys.modules[name]


@lru_cache(maxsize=PROGRAMS_MAX)
def compiled(code: str, file: str) -> CodeType:
    """Code of a loop runs many times, and compiling is slower than most of it."""
    try:
        return compile(code, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.msg != "'return' outside function":
            raise
    return _as_function(code, file)


def _as_function(code: str, file: str) -> CodeType:
    """Code with a top-level `return`, as a function whose names are all global."""
    import ast  # noqa: PLC0415 - slow to import, and little code is like this

    class Unannotated(ast.NodeTransformer):
        """A global name cannot be annotated."""

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
            bare = ast.Assign([node.target], node.value) if node.value else ast.Pass()
            return ast.copy_location(bare, node)

        def leave(self, node: ast.AST) -> ast.AST:
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave

    tree = Unannotated().visit(ast.parse(code, file))
    shell = ast.parse(f"def {_TASK}(): pass\n{_RETURNED} = {_TASK}()")
    function = shell.body[0]
    assert isinstance(function, ast.FunctionDef)
    is_future = [
        isinstance(line, ast.ImportFrom) and line.module == "__future__" for line in tree.body
    ]
    shell.body[:0] = [line for line, early in zip(tree.body, is_future, strict=True) if early]
    body = [line for line, early in zip(tree.body, is_future, strict=True) if not early]
    function.body = body
    local = next(
        constant
        for constant in compile(shell, file, "exec", dont_inherit=True).co_consts
        if isinstance(constant, CodeType) and constant.co_name == _TASK
    )
    if names := sorted({*local.co_varnames, *local.co_cellvars}):
        function.body = [ast.copy_location(ast.Global(names), body[0]), *body]
    return compile(shell, file, "exec", dont_inherit=True)

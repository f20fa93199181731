"""Code sees its input, and its result is found however it gives it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.python import PythonTool
from tests.tools.calls import call, services


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[PythonTool]:
    tool = PythonTool(services(tmp_path, processes_max=1))
    yield tool
    await tool.close()


async def run(tool: PythonTool, code: str, given: dict[str, Any] | None = None, **more: Any) -> Any:
    """The value; `more` are parameters of the task."""
    return (await tool.run(call("python", {"code": code, **more}, input=given or {}))).value


async def failure(tool: PythonTool, code: str, given: Any = None, **more: Any) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        await run(tool, code, given, **more)
    return raised.value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("result = n + 1", 3),
        ("result = None", None),
        ("def main(n): return n * 10", 20),
        ("def main(n, other=5): return n + other", 7),
        ("def main(n, /): return n", 2),
        ("def main(**given): return sorted(given)", ["n"]),
        ("def main(input_data): return input_data", {"n": 2}),
        ("def main(args, context): return args['n']", 2),
        ("async def main(n):\n import asyncio\n await asyncio.sleep(0)\n return n", 2),
        ("return {'n': n}", {"n": 2}),
        ("if n == 2:\n    return 'early'\nresult = 'late'", "early"),
        ("if n == 3:\n    return 'early'\nresult = 'late'", "late"),
        ("n = n + 1\ntotal: int = n\ndef f(): return total\nreturn f()", 3),
        ("from __future__ import annotations\nreturn [n for _ in range(n)]", [2, 2]),
        ("def main(n): return 1\nresult = main(n) + 1", 2),
        ("def main(n): return 1\nreturn main(n) + 1", 2),
        ("result = input_data['n'] + args['n'] + globals()['n']", 6),
        ("result = json.dumps({'a': n})", '{"a": 2}'),
        ("result = 1\nimport sys; sys.exit()", 1),
        ("x = n", {"status": "ok", "message": "the code ran and set no result"}),
        ("def main(): pass", None),
    ],
)
async def test_the_result_is_found(tool: PythonTool, code: str, value: object) -> None:
    assert await run(tool, code, {"n": 2}) == value


async def test_an_input_called_input_data_is_that_value(tool: PythonTool) -> None:
    assert await run(tool, "result = input_data", {"input_data": {"a": 1}}) == {"a": 1}


async def test_an_input_called_result_is_not_the_result(tool: PythonTool) -> None:
    code = "def main(result): return result + 1"

    assert await run(tool, code, {"result": 1}) == 2
    assert await run(tool, "result['b'] = 2", {"result": {"a": 1}}) == {"a": 1, "b": 2}


async def test_code_can_look_at_the_context(tool: PythonTool) -> None:
    answer = await tool.run(
        call(
            "python",
            {"code": "result = [context['workload']['day'], context.get('other', 'none')]"},
            context={"workload": {"day": 3}},
        )
    )

    assert answer.value == [3, "none"]


@pytest.mark.parametrize(
    ("libraries", "code"),
    [
        ({"m": "math"}, "result = m.floor(2.5)"),
        ({"floor": {"from": "math", "import": "floor"}}, "result = floor(2.5)"),
        ({"p": {"from": "os", "import": "path"}}, "result = len(p.join('', 'aa'))"),
        ({"dom": {"from": "xml", "import": "dom"}}, "result = 2 * bool(dom.__name__)"),
        ("math", "result = math.floor(2.5)"),
        (["math", "os.path"], "result = math.floor(2.5) * bool(os.path)"),
    ],
)
async def test_libraries_are_imported_under_their_names(
    tool: PythonTool, libraries: object, code: str
) -> None:
    assert await run(tool, code, libs=libraries) == 2


@pytest.mark.parametrize("libraries", [[1], {"m": {"from": 1}}, {"m": 5}])
async def test_t1_libraries_that_are_no_names_are_refused(
    tool: PythonTool, libraries: object
) -> None:
    raised = await failure(tool, "result = 1", libs=libraries)

    assert raised.failure.kind == "client_error"
    assert raised.failure.message.startswith("libs must be")


async def test_t1_a_library_that_is_not_there_is_named(tool: PythonTool) -> None:
    raised = await failure(tool, "result = 1", libs=["nowhere_to_be_found"])

    assert raised.failure.kind == "not_found"
    assert "there is no module nowhere_to_be_found; install it" in raised.failure.message


async def test_t1_an_exception_is_told_with_its_class_and_lines(tool: PythonTool) -> None:
    raised = await failure(tool, "def f():\n    raise KeyError('who')\n\nprint('hello')\nf()")

    assert raised.failure.kind == "transform"
    assert raised.failure.message == "'who'"
    assert raised.py is not None
    assert raised.py["exception"] == "KeyError"
    assert 'File "<work>", line 5, in <module>' in raised.py["traceback"]
    assert 'File "<work>", line 2, in f' in raised.py["traceback"]
    assert "python_program" not in raised.py["traceback"]
    assert raised.py["output"] == "hello\n"


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("result = (", "parse", "line 1 of the code: '(' was never closed"),
        ("raise TimeoutError('slow')", "timeout", "slow"),
        ("raise ConnectionRefusedError('no')", "connection", "no"),
        ("raise ValueError", "transform", "ValueError"),
        ("class E(Exception):\n def __str__(self): 1/0\nraise E", "transform", "E"),
        ("import sys; sys.exit(3)", "transform", "the code ended itself with sys.exit(3)"),
        ("raise KeyboardInterrupt", "transform", "KeyboardInterrupt"),
        ("result = {'a': [float('nan')]}", "schema", "result.a[0] is nan"),
        ("result = b'x'", "schema", "result is bytes"),
        ("def main(n, m): pass", "client_error", "main needs m, which the input does not have"),
        ("def f(): f()\nf()", "transform", "maximum recursion depth exceeded"),
    ],
)
async def test_t1_a_failure_has_a_kind_and_a_message(
    tool: PythonTool, code: str, kind: str, message: str
) -> None:
    raised = await failure(tool, code, {"n": 1})

    assert raised.failure.kind == kind
    assert raised.failure.message.startswith(message)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"status": "error", "error": "no rows"}, "unknown", "no rows"),
        ({"status": "error", "message": "no rows"}, "unknown", "no rows"),
        ({"status": "error"}, "unknown", "the code gave status error and no message"),
        (
            {"status": "error", "error": {"kind": "rate_limit", "message": "slow down"}},
            "rate_limit",
            "slow down",
        ),
    ],
)
async def test_t1_a_result_with_status_error_is_a_failure(
    tool: PythonTool, value: dict[str, Any], kind: str, message: str
) -> None:
    raised = await failure(tool, "result = given", {"given": value})

    assert raised.failure.kind == kind
    assert raised.failure.message == message
    assert raised.failure.retryable == (kind == "rate_limit")
    assert raised.value == value


async def test_t1_an_input_that_is_no_data_is_refused(tool: PythonTool) -> None:
    assert (await failure(tool, "result = 1", {"a": object()})).failure.kind == "schema"


async def test_t1_a_folder_that_is_not_there_is_named(tool: PythonTool) -> None:
    raised = await failure(tool, "result = 1", cwd="/no/such/folder")

    assert raised.failure.kind == "not_found"
    assert "/no/such/folder" in raised.failure.message


async def test_data_goes_in_and_comes_out_unchanged(tool: PythonTool) -> None:
    given = {"a": [1, 2.5, None, True, "ünï\u2028\0", {"deep": [[]]}], "big": 2**60, "e": ""}

    assert await run(tool, "result = input_data", given) == given


async def test_code_may_define_classes_that_look_their_module_up(tool: PythonTool) -> None:
    code = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from typing import get_type_hints\n"
        "@dataclass\n"
        "class Row:\n"
        "    n: int\n"
        "result = [Row(n), str(get_type_hints(Row)['n'])]\n"
    )

    assert await run(tool, code, {"n": 1}) == [{"n": 1}, "<class 'int'>"]


async def test_code_is_taken_to_have_effects(tool: PythonTool) -> None:
    assert tool.has_effect({"code": "result = 1"})
    assert not tool.waits


async def test_what_code_printed_comes_with_its_result(tool: PythonTool) -> None:
    loud = call("python", {"code": "print('one')\nprint('two')\nresult = 1"})
    quiet = call("python", {"code": "result = 2"})

    assert (await tool.run(loud)).printed == "one\ntwo\n"
    assert (await tool.run(quiet)).printed == ""


async def test_a_traceback_shows_the_line_of_the_code_that_failed(tool: PythonTool) -> None:
    raised = await failure(tool, "def half(n):\n    return n / 0\n\nresult = half(1)")

    assert raised.py is not None
    shown = raised.py["traceback"].splitlines()
    assert any(line.endswith(", line 2, in half") for line in shown)
    assert "    return n / 0" in shown

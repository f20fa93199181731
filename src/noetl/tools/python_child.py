"""The process in which code of playbooks runs: one request after the other. Run as a script.

It imports nothing of ours by name and is given nothing of ours: neither environment nor secrets.
"""

import _thread
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

READ_BYTES = 1 << 20
HEADER_BYTES = 8
TRACEBACK_MAX = 8_000


def _beside(name: str) -> ModuleType:
    """By file, because this folder on the module path would hide modules of Python's own."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    loader = SourceFileLoader(f"_noetl_{os.path.basename(name)}", path)
    module = ModuleType(loader.name)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from noetl.tools import python_confinement, python_plain, python_program
else:
    python_confinement = _beside("python_confinement")
    python_plain = _beside("python_plain")
    python_program = _beside("python_program")

KINDS = {
    "TimeoutError": "timeout",
    "Timeout": "timeout",
    "ConnectionError": "connection",
    "ConnectError": "connection",
    "ClientConnectionError": "connection",
}


class Surroundings:
    """What code may change around itself, put back for the next."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._folder = os.getcwd()
        self._environment = dict(os.environ)  # noqa: TID251 - the child's own, as it was given
        self._lists = [(sys.path, list(sys.path)), (sys.argv, list(sys.argv))]
        self._streams = (sys.stdin, sys.stdout, sys.stderr)

    def prepare(self, request: dict[str, Any]) -> None:
        os.environ.update(request["env"])  # noqa: TID251 - what the task adds
        if request["cwd"]:
            try:
                os.chdir(request["cwd"])
            except OSError as error:
                message = f"cannot run in {request['cwd']}: {error.strerror}"
                raise python_program.CodeRefused("not_found", message) from error

    def restore(self) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a fork of the code that came back here
        signal.alarm(0)
        os.chdir(self._folder)
        if os.environ != self._environment:  # noqa: TID251 - the child's own
            os.environ.clear()  # noqa: TID251 - the child's own
            os.environ.update(self._environment)  # noqa: TID251 - the child's own
        for now, before in self._lists:
            now[:] = before
        sys.stdin, sys.stdout, sys.stderr = self._streams
        sys.modules.pop(python_program.MODULE_NAME, None)

    def is_disturbed(self) -> bool:
        """Something of the code goes on or is broken: the next must not share with it."""
        is_closed = any(stream.closed for stream in self._streams)
        return is_closed or _thread._count() > 0 or _has_children()


def _tables() -> Any:
    """The module that knows Arrow, loaded with the first table that goes in or comes out."""
    loaded = sys.modules.get("_noetl_python_tables")
    if loaded is None:
        _beside("../results/batch_file")
        loaded = _beside("python_tables")
    return loaded


def _run(request: dict[str, Any], control: int) -> bytes:
    """The answer to code that went well."""
    if request["tables"] or request["arrow"]:
        _tables().place(request)
    result = python_program.run(request)
    if request["chunks"] and hasattr(result, "__next__"):
        result = _all_told(result, control)
    if python_program.may_hold_table(result):
        table, result = _tables().taken(result, request["table_file"])
        if table is not None:
            return b'{"table":%b,"is_worn":' % json.dumps(table).encode()
    return b'{"value":%b,"is_worn":' % python_plain.encoded(result)


def _all_told(chunks: Iterator[Any], control: int) -> Any:
    """What a generator returns, once everything that it yields was taken. One chunk waits as it
    goes out until the next is made: only then is it known whether more follow."""
    waiting: bytes | None = None
    count = 0
    while True:
        try:
            chunk = python_plain.encoded(next(chunks))
        except StopIteration as end:
            if waiting is not None:
                _tell(control, waiting, b"false")
            return {"chunks": count} if end.value is None else end.value
        except BaseException:
            if waiting is not None:
                _tell(control, waiting, b"true")
            raise
        count += 1
        if waiting is not None:
            _tell(control, waiting, b"true")
        waiting = chunk


def _tell(control: int, chunk: bytes, has_more: bytes) -> None:
    """Returns when whoever asks has taken it."""
    _send(control, b'{"has_more":', has_more, b',"chunk":', chunk, b"}")
    if _receive(control) is None:
        os._exit(0)  # nobody asks any more


def answer_to(data: bytearray, around: Surroundings, control: int) -> bytes:
    """One request's answer as JSON: its value, or its failure."""
    outcome = b""
    failure: dict[str, Any] | None = None
    file = code = ""
    try:
        request = json.loads(data)
        data.clear()
        file, code = request["file"], request["code"]
        around.prepare(request)
        outcome = _run(request, control)
    except BaseException as error:  # noqa: BLE001 - whatever code raises is its failure
        failure = described(error, file, code)
    around.restore()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the code closed it
            stream.flush()
    is_worn = around.is_disturbed() or (failure or {}).get("exception") == "MemoryError"
    worn = b"true" if is_worn else b"false"
    if failure is not None:
        return b'{"failure":%b,"is_worn":%b}' % (json.dumps(failure).encode(), worn)
    return b"%b%b}" % (outcome, worn)


def described(error: BaseException, file: str, code: str = "") -> dict[str, Any]:
    """What went wrong, in the words of the exception, and where in the code."""
    if isinstance(error, python_plain.NotPlain):
        return {"kind": "schema", "message": str(error)}
    if isinstance(error, python_program.CodeRefused):
        return {"kind": error.kind, "message": str(error)}
    names = [kind.__name__ for kind in type(error).__mro__]
    kind = next((KINDS[name] for name in names if name in KINDS), "transform")
    if isinstance(error, SyntaxError) and error.filename == file:
        kind, message = "parse", f"line {error.lineno} of the code: {error.msg}"
    elif isinstance(error, MemoryError):
        megabytes = resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20
        kind = "unknown"
        message = f"the code needed more than the {megabytes} MB it may have; give it less at once"
    elif isinstance(error, SystemExit):
        message = f"the code ended itself with sys.exit({error.code!r})"
    else:
        message = _text(error)
    return {
        "kind": kind,
        "message": message,
        "exception": names[0],
        "traceback": _traceback(error, file, code),
    }


def _text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - the text of an exception is code of the author, too
        return type(error).__name__


def _traceback(error: BaseException, file: str, code: str) -> str:
    """From the first line of the code on, with the lines themselves; the last part when it is
    long."""
    import linecache  # noqa: PLC0415 - slow to import, and code that fails is rare
    import traceback  # noqa: PLC0415 - likewise

    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    first = error.__traceback__
    while first is not None and first.tb_frame.f_code.co_filename != file:
        first = first.tb_next
    try:
        lines = traceback.format_exception(type(error), error, first)
    except Exception:  # noqa: BLE001 - as above
        return type(error).__name__
    return "".join(lines)[-TRACEBACK_MAX:]


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _receive(control: int) -> bytearray | None:
    """None: nobody asks any more."""
    data = bytearray()
    size = HEADER_BYTES
    while len(data) < size:
        chunk = os.read(control, READ_BYTES)
        if not chunk:
            return None
        data += chunk
        if size == HEADER_BYTES and len(data) >= HEADER_BYTES:
            size += int.from_bytes(data[:HEADER_BYTES], "big")
    del data[:HEADER_BYTES]
    return data


def _send(control: int, *parts: bytes) -> None:
    size = sum(map(len, parts)).to_bytes(HEADER_BYTES, "big")
    for part in (size + parts[0], *parts[1:]):  # a large one is not copied for its frame
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(control, rest) :]


def main(arguments: list[str]) -> None:
    """`control memory_bytes_max`: the socket to listen on, and how much memory code may have."""
    control, memory_bytes_max = map(int, arguments)
    os.set_inheritable(control, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of the limits on memory, the one that does not count what libraries only reserve.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes_max, memory_bytes_max))
    python_confinement.confine()
    sys.stdout.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    around = Surroundings()
    while (data := _receive(control)) is not None:
        _send(control, answer_to(data, around, control))


if __name__ == "__main__":
    main(sys.argv[1:])

"""YAML to plain data, keeping line and column of every node.

Reads events rather than building objects, so that nothing in the text can choose a Python type,
recurse past a limit, or grow by aliases without being counted.
"""

import hashlib
import re

import msgspec
import yaml

from noetl.dsl.compose import Composer, Refused
from noetl.dsl.nodes import Node
from noetl.dsl.problems import IsOtherKind, Problem, Problems
from noetl.dsl.yaml_errors import explain

BYTES_MAX = 4_000_000

# Written in C where the library was built with it, which is ten times faster; both speak the same.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class Loaded(msgspec.Struct, frozen=True):
    root: Node | None  # None: there is nothing to go on with
    problems: Problems


def playbook_digest(text: str | bytes) -> str:
    """The sha256 of the exact bytes; one changed space is another playbook."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def load(text: str | bytes, is_other_kind: IsOtherKind | None = None) -> Loaded:
    problems = Problems(is_other_kind)
    readable = _readable(text, problems)
    if readable is None:
        return Loaded(None, problems)
    lines = readable.splitlines()
    composer = Composer(lines, problems)
    try:
        for event in yaml.parse(readable, Loader=_LOADER):
            composer.take(event)
    except Refused:
        return Loaded(None, problems)
    except yaml.MarkedYAMLError as error:
        problems.record(explain(error, lines))
        return Loaded(None, problems)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        problems.record(Problem(1, 1, "", f"this is not YAML: {error}", "check the whole file"))
        return Loaded(None, problems)
    return Loaded(composer.finish(), problems)


def _readable(text: str | bytes, problems: Problems) -> str | None:
    if len(text) > BYTES_MAX:
        message = f"the file has {len(text)} bytes; a playbook has at most {BYTES_MAX}"
        fix = "keep data in files or tables and let a step read them"
        problems.record(Problem(1, 1, "", message, fix))
        return None
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(error.object[: error.start].decode("utf-8"))
        message = f"the byte 0x{error.object[error.start]:02x} is not valid UTF-8"
        problems.record(Problem(line, column, "", message, "save the file as UTF-8"))
        return None
    decoded = decoded.removeprefix("\ufeff")
    forbidden = _FORBIDDEN.search(decoded)
    if forbidden is not None:
        line, column = _position(decoded[: forbidden.start()])
        message = f"the character U+{ord(forbidden[0]):04X} is not allowed in YAML"
        fix = 'remove it, or write it as an escape such as "\\u0007" inside double quotes'
        problems.record(Problem(line, column, "", message, fix))
        return None
    return decoded


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n")

"""Whether Python code in a playbook can be read at all. Nothing is run here."""

import ast
import warnings

from noetl.dsl.language.shapes import is_template
from noetl.dsl.nodes import Node, Scalar
from noetl.dsl.problems import Problems


def check_python(node: Node | None, problems: Problems) -> None:
    """Code with templates in it is not Python yet, and is left to the moment it runs."""
    if not isinstance(node, Scalar) or is_template(node.text):
        return
    reason = _syntax_error(node.text)
    if reason is not None:
        problems.error(node, f"the code is not Python: {reason}", "correct the code")


def _syntax_error(code: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape is the author's affair
        try:
            ast.parse(code)
        except SyntaxError as error:
            return f"{error.msg} (line {error.lineno or 1} of the code)"
        except (RecursionError, MemoryError):
            return "it is nested too deeply"
        except ValueError as error:
            return str(error)
    return None

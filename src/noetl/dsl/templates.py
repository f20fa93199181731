"""Whether `{{ … }}` and `{% … %}` can be read at all. Nothing is rendered here."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from jinja2 import TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from noetl.domain.playbook.wording import shown
from noetl.dsl.language.shapes import is_template
from noetl.dsl.nodes import Items, Mapping, Node, Scalar
from noetl.dsl.problems import Problems

SECRETS = "keychain"
_ENVIRONMENT = ImmutableSandboxedEnvironment()
_REASON_MAX = 200
_TEMPLATES_KEPT_MAX = 4_096
_CODE = "code"  # Python has its own use for double braces
NAME = re.compile(
    r"\{\{ ?((?!(?:and|else|if|in|is|not|or)\b)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*) ?\}\}"
)
"""Most templates are just a name; these need no parser."""


def check_templates(root: Node, problems: Problems) -> None:
    good: set[str] = set()
    for node in template_texts(root):
        if node.text in good:
            continue
        reason = _syntax_error(node.text)
        if reason is None:
            good.add(node.text)
        else:
            fix = "compare the braces, quotes and words of the template"
            problems.error(node, f"the template cannot be read: {reason}", fix)


def mentions_secrets(text: str) -> bool:
    """Whether rendering it would bring a value of the keychain along."""
    if SECRETS not in text or not is_template(text):
        return False
    parsed = parsed_template(text)
    return isinstance(parsed, nodes.Template) and SECRETS in meta.find_undeclared_variables(parsed)


def template_texts(root: Node, passed_over: Collection[str] = ()) -> Iterator[Scalar]:
    """Every template below, but not those under keys that are passed over."""
    waiting = [root]
    passed = {_CODE, *passed_over}
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting += [entry.value for key, entry in node.entries.items() if key not in passed]
        elif isinstance(node, Items):
            waiting += node.nodes
        elif isinstance(node.value, str) and is_template(node.value):
            yield node


def values_of(root: Node, keys: Collection[str]) -> Iterator[Node]:
    """What stands under these keys, wherever they are."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            for key, entry in node.entries.items():
                if key in keys:
                    yield entry.value
                else:
                    waiting.append(entry.value)
        elif isinstance(node, Items):
            waiting += node.nodes


def _syntax_error(text: str) -> str | None:
    if is_plain_names(text):
        return None
    parsed = parsed_template(text)
    return parsed if isinstance(parsed, str) else None


def is_plain_names(text: str) -> bool:
    return "{" not in NAME.sub("", text)


@lru_cache(maxsize=_TEMPLATES_KEPT_MAX)
def parsed_template(text: str) -> nodes.Template | str:
    """The template, or the reason why it is none."""
    try:
        return _ENVIRONMENT.parse(text)
    except TemplateSyntaxError as error:
        reason = (error.message or "it ends too early")[:_REASON_MAX].rstrip(".")
        return f"{reason} (line {error.lineno} of the text)" if "\n" in text else reason
    except RecursionError:
        return "it is nested too deeply"
    except (ValueError, OverflowError) as error:
        return shown(error)

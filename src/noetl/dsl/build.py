"""Plain data to Playbook, collecting every problem instead of stopping at the first."""

from noetl.domain.playbook.endless import endless_findings
from noetl.domain.playbook.graph import ways_in
from noetl.domain.playbook.keeping import aliases_of
from noetl.domain.playbook.model import Playbook
from noetl.domain.playbook.rules import findings
from noetl.domain.playbook.wording import nearest, shown
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.document import ROOT
from noetl.dsl.nodes import Mapping, Node, Scalar, to_plain
from noetl.dsl.parts.document import executor, keychain, metadata, workbook
from noetl.dsl.parts.steps import steps
from noetl.dsl.problems import Problems


def build(root: Node, problems: Problems) -> Playbook | None:
    """The playbook as far as it can be read; None when there are no steps to speak of."""
    if _is_other_document(root, problems):
        return None
    fields = read(root, ROOT, problems)
    if fields is None:
        return None
    _check_extra(fields, problems)
    execution = executor(fields.get("executor"), problems)
    made = steps(fields.items("workflow"), execution.loop_mode, problems)
    playbook = Playbook(
        metadata=metadata(fields.get("metadata"), problems),
        steps=made,
        api_version=fields.text("apiVersion") or "",
        workload=fields.mapping("workload"),
        keychain=keychain(fields.items("keychain"), problems),
        workbook=workbook(fields.items("workbook"), problems),
        executor=execution,
        exposed={
            name: to_plain(value)
            for name, value in fields.extra.items()
            if isinstance(value, Mapping)
        },
        aliases=aliases_of(made.values()),
        before=ways_in(made.values()),
    )
    if not made:
        _say_that_nothing_runs(fields, problems)
        return None
    for finding in (*findings(playbook), *endless_findings(playbook)):
        problems.find(finding, root)
    return playbook


def _is_other_document(root: Node, problems: Problems) -> bool:
    kind = root.get("kind") if isinstance(root, Mapping) else None
    if not isinstance(kind, Scalar) or kind.value in (None, "Playbook"):
        return False
    if nearest(kind.text, ["Playbook"]) is not None:
        return False  # a misspelling; the rest is worth reading
    message = f"this document is a {shown(kind.text)}, and only playbooks can be checked"
    problems.error(kind, message, "write `kind: Playbook`, or leave the file out")
    return True


def _check_extra(fields: Fields, problems: Problems) -> None:
    """A map at the root is a name for templates; anything else there is a mistake."""
    for name, value in fields.extra.items():
        key = fields.node.entries[name].key
        close = nearest(name, ROOT.keys)
        message = f"{shown(name)!r} is not a key of a playbook"
        if not isinstance(value, Mapping):
            fix = "remove it" if close is None else f"did you mean {close!r}?"
            problems.error(key, message, fix)
        elif close is not None:
            exposed = f"{message}; templates can read it as {{{{ {shown(name)} }}}}"
            problems.warning(key, exposed, f"did you mean {close!r}?")


def _say_that_nothing_runs(fields: Fields, problems: Problems) -> None:
    if "workflow" in fields.values and not fields.items("workflow"):
        key = fields.node.entries["workflow"].key
        problems.error(key, "the workflow has no steps", "add at least one step")

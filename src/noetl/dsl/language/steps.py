"""Keys of a step: what runs, what is set, what is kept, and where it goes from there."""

from noetl.domain.playbook.keeping import STORE_KINDS
from noetl.domain.playbook.model import ARC_EVENTS
from noetl.dsl.language.document import LOOP_MODES
from noetl.dsl.language.records import WITHOUT_EFFECT, Key, Record
from noetl.dsl.language.shapes import (
    ANYTHING,
    BOOLEAN,
    CONDITION,
    COUNT,
    MAP,
    NAME,
    NAMES,
    SECONDS,
    TEXT,
    TEXT_OR_NUMBER,
    choice,
    either,
    names_or_records,
    record,
    records,
)

STEP = Record(
    name="step",
    words="a step",
    keys={
        "step": Key(NAME, "Its name; templates read its result by it.", required=True),
        "desc": Key(TEXT, "What it does.", aliases=("description",)),
        "spec": Key(record("step_spec"), "Timeout and policies."),
        "input": Key(MAP, "Merged under the input of every task.", aliases=("args",)),
        "loop": Key(record("loop"), "Repeat it over a list or a cursor."),
        "tool": Key(either(record("task"), records("pipeline_task")), "One tool, or a pipeline."),
        "set": Key(MAP, "Names to write when it ends."),
        "output": Key(record("output"), "What is kept of a result.", aliases=("result",)),
        "emit": Key(either(record("emit"), records("emit")), "Changes of business objects."),
        "next": Key(
            either(TEXT, names_or_records("arc"), record("next")),
            "Where to go: a step, a list, or arcs with guards.",
        ),
    },
    retired={
        "when": "put `when` on the arcs that lead to this step",
        "case": "use `next.arcs` with `when`",
        "type": "write `tool: {kind: …}`",
        "vars": "use `set: {ctx.name: …}`",
        "sink": "add a task that saves to the pipeline",
        "save": "add a task that saves to the pipeline",
        "retry": "use `spec.policy.rules` on the tool, with `do: retry`",
        "pagination": "use a loop, or a rule with `do: jump`",
        "name": "call it `step`",
        "kind": "put it under `tool`",
    },
    ignored=frozenset({"command"}),
)

STEP_SPEC = Record(
    name="step_spec",
    words="spec of a step",
    keys={
        "timeout": Key(SECONDS, "How long the step may take.", aliases=("timeout_seconds",)),
        "policy": Key(record("step_policy"), "Admission, failure."),
        "loop_mode": Key(choice(*LOOP_MODES), "The loop's mode."),
        "fanout": Key(record("fanout"), "For mode fanout."),
    },
    retired={"next_mode": "use `next: {spec: {mode: …}}`"},
)

STEP_POLICY = Record(
    name="step_policy",
    words="policy of a step",
    keys={
        "admit": Key(record("admit"), "Whether the step may run."),
        "failure": Key(
            either(choice("fail_fast", "continue"), record("failure")),
            "What a failed row means for the step.",
        ),
        "lifecycle": Key(MAP, "Kept as written."),
        "emit": Key(MAP, "Kept as written."),
    },
    retired={"rules": "put rules under `spec.policy` of the tool, or under `admit`"},
)

ADMIT = Record(
    name="admit",
    words="admit",
    keys={
        "mode": Key(choice("exclusive"), "The first rule that matches decides."),
        "rules": Key(records("admit_rule"), "Without a match the step is admitted."),
    },
)

ADMIT_RULE = Record(
    name="admit_rule",
    words="an admission rule",
    keys={
        "when": Key(CONDITION, "When it applies."),
        "then": Key(record("verdict"), "`{allow: true}` or `{allow: false}`."),
        "else": Key(record("else_verdict"), "Applies when no other rule did."),
    },
)

VERDICT = Record(
    name="verdict",
    words="the verdict of an admission rule",
    keys={"allow": Key(BOOLEAN, "false skips the step.", required=True)},
)

FAILURE = Record(
    name="failure",
    words="failure",
    keys={"mode": Key(choice("fail_fast", "continue"), "continue: failed rows are rows.")},
)

NEXT = Record(
    name="next",
    words="next",
    keys={
        "spec": Key(record("next_spec"), "How arcs are chosen."),
        "arcs": Key(records("arc"), "Where to go.", required=True),
    },
    retired={
        "mode": "put `mode` under `spec`",
        "on_no_match": "put `on_no_match` under `spec`",
        "step": "write `next: name`, or a list of arcs under `arcs`",
    },
)

NEXT_SPEC = Record(
    name="next_spec",
    words="spec of next",
    keys={
        "mode": Key(choice("exclusive", "inclusive"), "The first true arc, or all of them."),
        "on_no_match": Key(choice("complete", "quiet"), "quiet ends only this branch."),
    },
)

ARC = Record(
    name="arc",
    words="an arc",
    keys={
        "step": Key(NAME, "The step it leads to; `end` needs no step.", required=True),
        "when": Key(CONDITION, "Without it the arc is always open."),
        "set": Key(MAP, "Names to write when it is taken.", aliases=("args",)),
        "on": Key(choice(*ARC_EVENTS), "The event it answers to."),
    },
    retired={"to": "call it `step`", "target": "call it `step`", "then": "call it `step`"},
    ignored=frozenset({"cond", "desc", "description"}),
)

OUTPUT = Record(
    name="output",
    words="output",
    keys={
        "store": Key(record("store"), "Inside the event, outside of it, or by size."),
        "output_select": Key(NAMES, "Fields that stay at hand when the result is large."),
        "select": Key(names_or_records("selection"), "Fields that stay at hand, as `{path, as}`."),
        "accumulate": Key(
            MAP,
            "Of other engines, without effect: a loop gathers its results.",
            hint="gather over runs with `set: {ctx.name: …}`; a loop's result has all its rows",
        ),
        "inline_max_bytes": Key(COUNT, "Larger results are stored by reference."),
        "preview_max_bytes": Key(COUNT, "Size of what is shown of a stored result."),
        "scope": Key(choice("step", "execution", "workflow", "permanent"), "How long it lives."),
        "as": Key(NAME, "Another name for the step's result."),
    },
)

_OWN_NAMES = "results lie under their own names in the object store of the cell"

STORE = Record(
    name="store",
    words="store",
    keys={
        "kind": Key(choice(*STORE_KINDS), "What kind of store.", aliases=("driver",)),
        "bucket": Key(TEXT, WITHOUT_EFFECT, hint=_OWN_NAMES),
        "prefix": Key(TEXT, WITHOUT_EFFECT, hint=_OWN_NAMES),
        "ttl": Key(TEXT_OR_NUMBER, WITHOUT_EFFECT, hint="a result lives as long as its execution"),
        "compression": Key(
            TEXT,
            WITHOUT_EFFECT,
            hint="equal results are equal bytes, so nothing is packed",
            usual="none",
        ),
        "credential": Key(
            TEXT,
            WITHOUT_EFFECT,
            aliases=("auth",),
            hint="the object store of the cell has its own",
        ),
    },
)

SELECTION = Record(
    name="selection",
    words="a selected field",
    keys={
        "path": Key(TEXT, "Where it is in the result.", required=True),
        "as": Key(NAME, "What it is called; without it, the last part of the path."),
    },
)

EMIT = Record(
    name="emit",
    words="emit",
    keys={
        "object": Key(TEXT, "The kind of business object.", required=True),
        "id": Key(TEXT_OR_NUMBER, "Which one.", required=True),
        "status": Key(ANYTHING, "Its new status."),
        "attributes": Key(either(MAP, TEXT), "Its new attributes."),
    },
)

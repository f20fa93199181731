"""Keys of a task that every tool has, and of the rules that say what its outcome means."""

from noetl.dsl.language.records import WITHOUT_EFFECT, Key, Record
from noetl.dsl.language.shapes import (
    CONDITION,
    COUNT,
    FLAG,
    LIST,
    MAP,
    NAME,
    NUMBER,
    SECONDS,
    TEXT,
    choice,
    either,
    record,
    records,
)

ACTIONS = ("continue", "retry", "jump", "break", "fail")
BACKOFFS = ("none", "fixed", "linear", "exponential")
RETRY_KEYS = ("attempts", "backoff", "delay", "max_delay", "jitter", "multiplier")

EVERY_TASK: dict[str, Key] = {
    "kind": Key(NAME, "Which tool.", required=True),
    "name": Key(NAME, "What later tasks and jumps call it."),
    "desc": Key(TEXT, "What it does.", aliases=("description",)),
    "input": Key(MAP, "Values for the tool, rendered one by one.", aliases=("args",)),
    "auth": Key(either(TEXT, MAP), "Stored credentials by name.", aliases=("credential",)),
    "set": Key(MAP, "Names to write from the result, for the tasks that follow."),
    "spec": Key(record("task_spec"), "Policy; other keys count as the tool's own."),
    "output": Key(record("output"), "What is kept of a large result."),
    "output_select": Key(either(LIST, MAP), "Fields that stay at hand."),
    "emit": Key(either(record("emit"), records("emit")), "Changes of business objects."),
    "effects": Key(choice("none", "at_most_once"), "What running it twice would do to the world."),
    "timeout": Key(SECONDS, "How long one try may take.", aliases=("timeout_seconds",)),
    "retry": Key(record("legacy_retry"), "Legacy: rules with `do: retry` say more."),
    "assert": Key(MAP, "What it expects and returns; for people."),
}

RETIRED_TASK_KEYS = {
    "type": "call it `kind`",
    "policy": "put `policy` under `spec`",
    "rules": "put the rules under `spec.policy.rules`",
    "eval": "use `spec.policy.rules` with `when` and `then`",
    "case": "use `spec.policy.rules` with `when` and `then`",
    "sink": "add a task that saves to the pipeline",
    "save": "add a task that saves to the pipeline",
    "pagination": "use a loop, or a rule with `do: jump`",
    "loop": "put `loop` beside `tool`",
    "next": "put `next` beside `tool`, or use a rule with `do: jump`",
}

TASK_SPEC = Record(
    name="task_spec",
    words="spec of a task",
    keys={"policy": Key(record("task_policy"), "Rules for its outcome.")},
    unknown="kept",
)

TASK_POLICY = Record(
    name="task_policy",
    words="policy of a task",
    keys={
        "mode": Key(choice("exclusive"), "The first rule that matches decides."),
        "on_unmatched": Key(
            choice("continue", "fail"),
            WITHOUT_EFFECT,
            hint="without a match success goes on and an error fails; say more with `else`",
        ),
        "rules": Key(records("rule"), "Asked in order."),
    },
    retired={"admit": "put `admit` under `spec.policy` of the step"},
)

RULE = Record(
    name="rule",
    words="a rule",
    keys={
        "when": Key(CONDITION, "When it applies."),
        "then": Key(record("action"), "What to do."),
        "else": Key(record("else_action"), "Applies when no other rule did."),
    },
    retired={
        "do": "put `do` under `then`",
        "set": "put `set` under `then`",
        "expr": "use `when` with a template",
    },
)

ACTION = Record(
    name="action",
    words="the action of a rule",
    keys={
        "do": Key(choice(*ACTIONS), "Without it, continue."),
        "set": Key(MAP, "Names to write before the action: `ctx.x`, `iter.x`, `step.x`."),
        "set_ctx": Key(MAP, "`set` with `ctx.` before each name."),
        "set_iter": Key(MAP, "`set` with `iter.` before each name."),
        "attempts": Key(COUNT, "retry: tries in total.", aliases=("max_attempts",)),
        "backoff": Key(choice(*BACKOFFS), "retry: how the delay grows."),
        "delay": Key(SECONDS, "retry: the first delay.", aliases=("initial_delay",)),
        "max_delay": Key(SECONDS, "retry: no delay is longer."),
        "jitter": Key(either(FLAG, NUMBER), "retry: spread the delays."),
        "multiplier": Key(NUMBER, "retry: factor of exponential.", aliases=("backoff_multiplier",)),
        "to": Key(NAME, "jump: a task of the same step, or `previous`."),
    },
    retired={
        "set_vars": "use `set: {ctx.name: …}`",
        "action": "call it `do`",
        "retry": "write `do: retry` with `attempts` and `delay` beside it",
    },
)

LEGACY_RETRY = Record(
    name="legacy_retry",
    words="retry",
    keys={
        "max_attempts": Key(COUNT, "Tries in total.", aliases=("attempts",)),
        "initial_delay": Key(SECONDS, "The first delay.", aliases=("delay",)),
        "backoff_multiplier": Key(NUMBER, "Factor from one delay to the next."),
        "max_delay": Key(SECONDS, "No delay is longer."),
        "jitter": Key(either(FLAG, NUMBER), "Spread the delays."),
        "retry_when": Key(CONDITION, "Without it, on every error.", aliases=("when",)),
    },
    unknown="suspected",
)

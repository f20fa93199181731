"""JSON Schema of the language, generated for editors from the words the checker itself reads.

An editor sees what JSON Schema can say: keys, shapes and required parameters. Whether an arc leads
somewhere, only the checker knows.
"""

from typing import Any

from noetl.dsl.language.document import (
    EXECUTOR,
    EXECUTOR_SPEC,
    KEYCHAIN_ENTRY,
    METADATA,
    ROOT,
    WORKBOOK_TASK,
)
from noetl.dsl.language.kinds import KIND_RECORDS, KINDS
from noetl.dsl.language.loops import CURSOR, FANOUT, FRAME, LOOP, LOOP_SPEC
from noetl.dsl.language.records import Record
from noetl.dsl.language.steps import (
    ADMIT,
    ADMIT_RULE,
    ARC,
    EMIT,
    FAILURE,
    NEXT,
    NEXT_SPEC,
    OUTPUT,
    SELECTION,
    STEP,
    STEP_POLICY,
    STEP_SPEC,
    STORE,
    VERDICT,
)
from noetl.dsl.language.tasks import (
    ACTION,
    EVERY_TASK,
    LEGACY_RETRY,
    RULE,
    TASK_POLICY,
    TASK_SPEC,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTITY = "urn:noetl:playbook:v2"

RECORDS = (
    *(METADATA, EXECUTOR, EXECUTOR_SPEC, KEYCHAIN_ENTRY, WORKBOOK_TASK),
    *(STEP, STEP_SPEC, STEP_POLICY, ADMIT, ADMIT_RULE, VERDICT, FAILURE),
    *(NEXT, NEXT_SPEC, ARC, OUTPUT, STORE, SELECTION, EMIT),
    *(LOOP, LOOP_SPEC, CURSOR, FRAME, FANOUT),
    *(TASK_SPEC, TASK_POLICY, RULE, ACTION, LEGACY_RETRY),
)

Schema = dict[str, Any]

_EVERY_TASK = Record(name="every_task", words="a task", keys=EVERY_TASK)


def playbook_schema() -> Schema:
    definitions = {record.name: _object(record) for record in RECORDS}
    definitions |= {record.name: _tool(name, record) for name, record in KIND_RECORDS.items()}
    definitions |= {
        "every_task": {"properties": _properties(_EVERY_TASK)},
        "task": _task(),
        "pipeline_task": _either(_reference("task"), _labelled()),
        "else_action": _alternative("action"),
        "else_verdict": _alternative("verdict"),
    }
    root = _object(ROOT)
    root["additionalProperties"] = {"type": "object"}
    root["properties"]["workflow"]["minItems"] = 1
    head = {"$schema": DIALECT, "$id": IDENTITY, "title": "NoETL playbook"}
    return head | root | {"$defs": dict(sorted(definitions.items()))}


def _object(record: Record) -> Schema:
    made: Schema = {"type": "object", "properties": _properties(record)}
    demands = [_one_of(record, (name,)) for name in record.required]
    demands += [_one_of(record, group) for group in record.needs]
    if demands:
        made["allOf"] = demands
    if record.unknown == "refused":
        made["additionalProperties"] = False
    return made


def _properties(record: Record) -> Schema:
    made: Schema = {name: {} for name in sorted(record.ignored)}
    for name, key in record.keys.items():
        for spelling in (name, *key.aliases):
            text = key.text if spelling == name else f"The same as `{name}`."
            schema = key.shape.schema if key.required else _or_nothing(key.shape.schema)
            made[spelling] = schema | ({"description": text} if text else {})
    return made


def _or_nothing(schema: Schema) -> Schema:
    """A key that may be left out may also be left empty."""
    if not schema:
        return {}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    if "anyOf" in schema:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(record: Record, names: tuple[str, ...]) -> Schema:
    """At least one of these keys, in any of its spellings."""
    spellings = [each for name in names for each in _spellings(record, name)]
    demands = [{"required": [spelling]} for spelling in spellings]
    return demands[0] if len(demands) == 1 else {"anyOf": demands}


def _spellings(record: Record, name: str) -> tuple[str, ...]:
    key = record.keys.get(name)
    return (name,) if key is None else (name, *key.aliases)


def _tool(name: str, record: Record) -> Schema:
    """A tool's parameters may also stand under `spec`, where no key is demanded."""
    made = _object(record)
    made["description"] = KINDS[name].text
    for key in EVERY_TASK.keys() - KINDS[name].parameters.keys():
        for spelling in _spellings(record, key):
            made["properties"][spelling] = _reference(f"every_task/properties/{spelling}")
    demands = [each for each in made.pop("allOf", []) if each != {"required": ["kind"]}]
    if demands:
        made["anyOf"] = [{"allOf": demands}, {"required": ["spec"]}]
    return made


def _task() -> Schema:
    cases = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": _reference(record.name),
        }
        for name, record in KIND_RECORDS.items()
    ]
    return {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": list(KINDS), "description": "Which tool."}},
        "allOf": cases,
    }


def _labelled() -> Schema:
    """`- fetch: {kind: http}`"""
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": _reference("task"),
    }


def _alternative(name: str) -> Schema:
    """What `else` may hold: `then` with the rest inside, the rest itself, or nothing."""
    then = {
        "type": "object",
        "properties": {"then": _reference(name)},
        "required": ["then"],
        "additionalProperties": False,
    }
    return _either(then, _reference(name), {"type": "null"})


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}

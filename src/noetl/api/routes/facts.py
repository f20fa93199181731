"""Facts told from outside about business objects, and the variables of an execution."""

from http import HTTPStatus
from typing import Any

import msgspec

from noetl.api.problems import Refused
from noetl.api.route import Asked, Nothing, get, post
from noetl.domain.events import BusinessObjectChanged
from noetl.domain.playbook.wording import shown
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant

_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an object; its fields stand here, or in `payload` or `context`."""

    execution_id: str
    object: str | None = None
    id: str | None = None
    status: str | None = None
    attributes: dict[str, Any] | None = None
    deleted: bool | None = None
    payload: dict[str, Any] | None = None
    context: dict[str, Any] | None = None


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "recorded"
    execution_id: ExecutionId


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    value: Any
    type: str
    source_step: str | None = None  # that wrote it last
    created_at: Instant | None = None  # when it did


class Variables(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    variables: dict[str, Variable]
    count: int


async def record(asked: Asked[Fact, Nothing]) -> Recorded:
    execution = ExecutionId(asked.body.execution_id)
    await asked.services.control.emit(asked.scope, execution, _change(asked.body))
    return Recorded(execution_id=execution)


def _change(fact: Fact) -> BusinessObjectChanged:
    given = {**(fact.context or {}), **(fact.payload or {})}
    for name in BusinessObjectChanged.__struct_fields__:
        value = getattr(fact, name)
        if value is not None:
            given[name] = value
    try:
        return msgspec.convert(given, BusinessObjectChanged)
    except msgspec.ValidationError as error:
        raise RequestInvalid(f"the fact is about no object: {error}") from error


async def variables(asked: Asked[Nothing, Nothing]) -> Variables:
    found = await _variables(asked)
    return Variables(execution_id=asked.execution, variables=found, count=len(found))


async def variable(asked: Asked[Nothing, Nothing]) -> Variable:
    name = asked.path["name"]
    found = (await _variables(asked)).get(name)
    if found is None:
        message = f"execution {asked.execution} has no variable {shown(name)!r}; see /api/vars"
        raise Refused(HTTPStatus.NOT_FOUND, "variable_not_found", message)
    return found


async def _variables(asked: Asked[Nothing, Nothing]) -> dict[str, Variable]:
    services = asked.services
    ctx = (await services.state(asked.execution)).ctx
    writers = await services.executions.writers(asked.scope, asked.execution) if ctx else {}
    return {
        name: Variable(
            value=value,
            type=_type(value),
            source_step=writers[name].step if name in writers else None,
            created_at=writers[name].time if name in writers else None,
        )
        for name, value in ctx.items()
    }


def _type(value: Any) -> str:
    return "null" if value is None else _TYPES.get(type(value), "object")


ROUTES = (
    post("/api/events", "Tell a fact about a business object", record, body=Fact, gives=Recorded),
    get("/api/vars/{execution_id}", "An execution's variables", variables, gives=Variables),
    get("/api/vars/{execution_id}/{name}", "One of them", variable, gives=Variable),
)

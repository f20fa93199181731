"""A result too large for its event says where it lies, opened or not."""

from typing import Any

import pytest

from noetl.domain.events.values import Result, ResultReference
from noetl.templates.layered import PipelineResult, plain_result, step_result
from noetl.templates.recorded import KV_BYTES_MAX, content_of, referred_result, value_of
from noetl.templates.render import Needs, Rendered, render

URI = "noetl://tenant/t/org/o/payload/abc"
ROWS = [{"id": number, "pad": "x" * 500} for number in range(300)]


def stored(content: dict[str, Any], byte_length: int = 200_000) -> Result:
    reference = ResultReference(type="object_store", uri=URI, byte_length=byte_length)
    return referred_result(content, reference)


def seen(template: str, result: Result, fetched: dict[str, Any] | None = None) -> Any:
    rendered = render(template, {"big": step_result(value_of(result, fetched))})
    return rendered.value if isinstance(rendered, Rendered) else rendered


CONTENTS = {
    "value": content_of({"count": 300, "rows": ROWS}),
    "tasks": content_of(PipelineResult({"load": {"rows": ROWS}, "shape": {"count": 300}})),
    "loop": {"loop": {"results": ROWS, "stats": {"total": 300}, "count": 300}},
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("is_fetched", [False, True])
def test_it_is_known_by_where_it_lies(content: dict[str, Any], is_fetched: bool) -> None:
    result = stored(content)
    fetched = {URI: content} if is_fetched else None

    assert seen("{{ big._ref }}", result, fetched) == URI
    assert seen("{{ big._store }}", result, fetched) == "kv"
    assert seen("{{ big._preview is defined and big._preview is not none }}", result, fetched)
    assert seen("{{ big.count }}", result, fetched) == 300


def test_to_ask_where_it_lies_does_not_open_it() -> None:
    assert isinstance(seen("{{ big.rows[299].id }}", stored(CONTENTS["value"])), Needs)
    assert seen("{{ big._ref }}", stored(content_of("x" * 200_000))) == URI


def test_the_store_tells_a_large_result_from_a_very_large_one() -> None:
    content = CONTENTS["value"]

    assert seen("{{ big._store }}", stored(content, KV_BYTES_MAX - 1)) == "kv"
    assert seen("{{ big._store }}", stored(content, KV_BYTES_MAX)) == "disk"


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_it_is_worth_says_nothing_of_it(content: dict[str, Any]) -> None:
    whole = plain_result(value_of(stored(content), {URI: content}))

    assert "_ref" not in whole
    assert seen("{{ big }}", stored(content), {URI: content}) == whole

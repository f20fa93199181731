"""Whatever is wrong with a request, the answer is a problem document, and never our fault."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noetl.api.app import ROUTES
from noetl.api.guard import INTERNAL_PATHS
from noetl.api.problems import STATUSES, status_of
from noetl.api.route import BODY_BYTES_MAX, AnyRoute
from noetl.kernel import errors
from tests.api.running import HELLO, Api

Request = tuple[str, str, dict[str, Any]]

WRONG: dict[str, tuple[Request, int, str]] = {
    "unknown playbook": (("POST", "/api/execute", {"json": {"path": "x"}}), 404, "entry_not_found"),
    "no playbook": (("POST", "/api/execute", {"json": {}}), 422, "request_invalid"),
    "version in words": (
        ("POST", "/api/execute", {"json": {"path": "tests/hello", "version": "new"}}),
        422,
        "request_invalid",
    ),
    "payload of a wrong shape": (
        ("POST", "/api/execute", {"json": {"path": "x", "payload": [1]}}),
        422,
        "body_invalid",
    ),
    "not JSON": (("POST", "/api/execute", {"data": b"{"}), 400, "body_malformed"),
    "not UTF-8": (("POST", "/api/execute", {"data": b'{"path":"\xff"}'}), 400, "body_malformed"),
    "half a surrogate": (
        ("POST", "/api/execute", {"data": b'{"path":"\\ud800"}'}),
        400,
        "body_malformed",
    ),
    "nested without end": (
        ("POST", "/api/execute", {"data": b'{"payload":' + b'{"a":' * 5_000}),
        400,
        "body_malformed",
    ),
    "not an object": (("POST", "/api/execute", {"json": 7}), 422, "body_invalid"),
    "misspelt field": (
        ("POST", "/api/execute", {"json": {"path": "tests/hello", "payloud": {"who": "Bert"}}}),
        422,
        "body_invalid",
    ),
    "misspelt field in a batch": (
        ("POST", "/api/execute/batch", {"json": {"executions": [{"pathh": "tests/hello"}]}}),
        422,
        "body_invalid",
    ),
    "misspelt field of a key": (
        ("POST", "/api/execute", {"json": {"path": "x", "dedup": {"key": "a", "window": 5}}}),
        422,
        "body_invalid",
    ),
    "two keys": (
        (
            "POST",
            "/api/execute",
            {
                "json": {"path": "x", "dedup": {"key": "a"}},
                "headers": {"Idempotency-Key": "b"},
            },
        ),
        422,
        "request_invalid",
    ),
    "unknown status": (
        ("GET", "/api/executions", {"params": {"status": "nope"}}),
        400,
        "status_unknown",
    ),
    "no execution": (("GET", "/api/executions/1", {}), 404, "execution_not_found"),
    "no number": (("GET", "/api/executions/abc/status", {}), 404, "execution_not_found"),
    "no stream": (("GET", "/api/executions/1/stream", {}), 404, "execution_not_found"),
    "cancel nothing": (
        ("POST", "/api/executions/1/cancel", {"json": {}}),
        404,
        "execution_not_found",
    ),
    "two cutoffs": (
        (
            "GET",
            "/api/replay/state",
            {"params": {"execution_id": "1", "as_of_position": "1", "as_of_event_id": "1"}},
        ),
        400,
        "cutoff_invalid",
    ),
    "no time": (
        ("GET", "/api/replay/state", {"params": {"execution_id": "1", "as_of_time": "noon"}}),
        400,
        "cutoff_invalid",
    ),
    "another tenant": (
        ("GET", "/api/replay/state", {"params": {"execution_id": "1", "tenant_id": "acme"}}),
        404,
        "execution_not_found",
    ),
    "nothing to replay": (("GET", "/api/replay/state", {}), 422, "query_invalid"),
    "page zero": (("GET", "/api/executions", {"params": {"page": "0"}}), 422, "query_invalid"),
    "limit in words": (
        ("GET", "/api/executions", {"params": {"limit": "all"}}),
        422,
        "query_invalid",
    ),
    "no route": (("GET", "/api/nope", {}), 404, "no_such_route"),
    "a slash too much": (("GET", "/api/executions/", {}), 404, "no_such_route"),
    "wrong method": (("DELETE", "/api/execute", {}), 405, "method_not_allowed"),
    "no credential": (("GET", "/api/credentials/x", {}), 404, "credential_missing"),
    "no digest": (("GET", "/api/internal/playbooks/..%2Fx", {}), 404, "no_such_route"),
    "unknown digest": (
        ("GET", f"/api/internal/playbooks/{'0' * 64}", {}),
        404,
        "entry_not_found",
    ),
    "not YAML": (
        ("POST", "/api/catalog/register", {"json": {"content": "{:"}}),
        422,
        "playbook_invalid",
    ),
    "a lost claim": (
        (
            "POST",
            "/api/work/heartbeat",
            {"json": {"execution_id": "1", "worker_id": "w", "claim": 1, "command_id": "c"}},
        ),
        404,
        "execution_not_found",
    ),
    "an endless wait": (
        ("POST", "/api/work/children/1/await", {"json": {"wait_seconds": 1e9}}),
        422,
        "body_invalid",
    ),
    "a fact about nothing": (
        ("POST", "/api/events", {"json": {"execution_id": "1", "payload": {"id": "1"}}}),
        422,
        "request_invalid",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_request_has_a_problem_document(api: Api, name: str) -> None:
    (method, path, request), status, code = WRONG[name]

    headers = api.as_worker if path.startswith(INTERNAL_PATHS) else {}
    answer = await api.call(method, path, **{"headers": headers, **request})

    assert (answer.status, answer.body["code"]) == (status, code), answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.body["status"] == status
    assert answer.body["type"] == f"urn:noetl:problem:{code}"
    assert {"title", "detail", "retryable", "instance"} <= answer.body.keys()


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 65_536):
        yield b" " * 65_536


async def test_a_body_has_a_size_whether_it_is_told_or_not(api: Api) -> None:
    told = io.BytesIO(b" " * (BODY_BYTES_MAX + 1))
    for data in (told, pieces(BODY_BYTES_MAX + 65_536)):
        answer = await api.call("POST", "/api/execute", data=data)
        assert (answer.status, answer.body["code"]) == (413, "body_too_large")


async def test_the_field_that_is_wrong_is_named(api: Api) -> None:
    body = {"executions": [{"path": "x"}, {"path": 1}]}
    answer = await api.call("POST", "/api/execute/batch", json=body)
    assert "$.executions[1].path" in answer.body["detail"]


def test_what_may_be_tried_again_is_unavailable_or_in_conflict() -> None:
    for status in (
        status_of(errors.LogUnavailable("the log is locked")),
        status_of(errors.StoreUnavailable("no answer")),
        status_of(errors.HomeInUse("here", "process 1")),
    ):
        assert status == 503
    assert status_of(errors.ClaimLost("c", "is over")) == 409
    assert status_of(errors.ValueNotPlain("a", "is odd")) == 422
    assert status_of(errors.InvariantBroken("never")) == 500
    assert all(issubclass(each, errors.NoETLError) for each in STATUSES)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.LogUnavailable("the log is locked"), (503, "log_unavailable", "1")),
        (errors.InvariantBroken("row 7 of our tables"), (500, "internal", None)),
        (RuntimeError("row 7 of our tables"), (500, "internal", None)),
    ],
)
async def test_what_goes_wrong_inside_stays_inside(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    expected: tuple[int, str, str | None],
) -> None:
    async def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(api.engine.starter, "start", fail)
    answer = await api.call("POST", "/api/execute", json={"path": "x"})

    told = (answer.status, answer.body["code"], answer.headers.get("Retry-After"))
    assert told == expected
    assert "our tables" not in str(answer)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 0.2) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
POSTS = [route for route in ROUTES if route.method == "POST"]


def bodies(route: AnyRoute) -> st.SearchStrategy[Any]:
    """Anything at all, and objects whose names are right and whose values may not be."""
    fields = getattr(route.body, "__struct_fields__", ("type", "execution_id"))
    likely = st.sampled_from(["1", "tests/hello", "latest", 1, {}, [], "command", "frame"])
    return plain | st.dictionaries(st.sampled_from([*fields, "x"]), likely | plain, max_size=8)


requests = st.sampled_from(POSTS).flatmap(lambda route: st.tuples(st.just(route), bodies(route)))


@given(st.lists(requests, min_size=1, max_size=10))
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_no_body_on_any_route_is_our_fault(
    api: Api, asked: list[tuple[AnyRoute, Any]]
) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    execution = (await api.post("/api/execute", path="tests/hello"))["execution_id"]
    for route, body in asked:
        path = route.public_path.format(execution_id=execution, stage_id="1", frame_id="1")
        answer = await api.call("POST", path, json=body)
        assert answer.status < 500, (path, body, answer)
        assert answer.status == 200 or answer.body["status"] == answer.status

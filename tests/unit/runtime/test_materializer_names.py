"""Names that lead to no object are counted and passed over: nothing waits for them."""

import msgspec
import pytest

from noetl.domain.events.values import ResultReference
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.results.filling import fill
from tests.unit.runtime.test_materializer import NAME, Scene, scene

__all__ = ["scene"]


@pytest.mark.parametrize(
    "uri",
    [
        "noetl://nonsense",
        "noetl://acme/other/results/7012345678901234567/load/0/0/1@1",
        f"noetl://tenant/default/org/default/payload/{'a' * 64}",
        "s3://bucket/key",
    ],
)
async def test_names_that_lead_nowhere_hold_nobody_up(scene: Scene, uri: str) -> None:
    strange = ResultReference(type="object_store", uri=uri, sha256="a" * 64, byte_length=3)
    await scene.recorded([strange, await scene.staged()])
    await scene.caught_up()
    assert scene.outcomes["present"] == 1
    assert scene.objects.heads == 1


@pytest.mark.parametrize(
    "uri",
    [
        "noetl://default/default/results/abc/load/0/0/1@1",  # no snowflake, so no day
        "noetl://default/default/results/99999999999999999999/load@1",
    ],
)
async def test_names_that_have_no_key_are_counted_and_passed_over(scene: Scene, uri: str) -> None:
    strange = ResultReference(type="object_store", uri=uri, sha256="a" * 64, byte_length=3)
    await scene.recorded([strange, await scene.staged()], times=2)

    await scene.caught_up()

    assert scene.outcomes == {"malformed": 1, "present": 1}
    assert await scene.materializer.unfilled(DEFAULT_SCOPE) == []


async def test_a_key_that_no_store_takes_is_counted_and_passed_over(scene: Scene) -> None:
    scope = Scope("t" * 300, "default")
    name = msgspec.structs.replace(NAME, tenant=scope.tenant_id)
    strange = ResultReference(type="object_store", uri=name.uri, sha256="a" * 64, byte_length=3)
    assert await fill(scene.results, scope, strange) == "malformed"

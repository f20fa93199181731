"""How large a result in its event may be is a setting, for everything that records results."""

from pathlib import Path

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.bootstrap.results import open_results
from noetl.bootstrap.settings import load_settings
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.errors import SettingInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.templates.recorded import INLINE_BYTES_MAX

VARIABLE = "NOETL_EVENT_RESULT_CONTEXT_MAX_BYTES"
NAME = ResultName(
    tenant="default", project="default", execution_id=ExecutionId("77"), step=StepName("load")
)


async def test_a_result_above_the_setting_is_stored(tmp_path: Path) -> None:
    near = {"NOETL_HOME": str(tmp_path), "NOETL_RESULT_SHARED_MEMORY_MB": "0"}
    settings = load_settings({**near, VARIABLE: "1000"})
    async with open_results(settings, MemoryObjectStore()) as results:
        assert (await results.record(NAME, "x" * 500)).reference is None
        assert (await results.record(NAME, "x" * 1_000)).reference is not None


def test_the_limit_has_a_usual_value_and_bounds() -> None:
    assert load_settings({}).event_result_context_max_bytes == INLINE_BYTES_MAX
    for wrong in ("-1", "163841", "much"):
        with pytest.raises(SettingInvalid, match=VARIABLE):
            load_settings({VARIABLE: wrong})

"""Work stands below the span of its step, and by its own names."""

from noetl.kernel.ids import StepName, WorkerId
from noetl.ports.telemetry import step_key
from noetl.runtime.worker_spans import work_names, work_place
from tests.unit.runtime.worker_scene import command, frame


def test_work_stands_where_it_says() -> None:
    for work in (command(traceparent="00-t-s-01"), frame([1, 2], traceparent="00-t-s-01")):
        place = work_place(work)
        assert place.carried == "00-t-s-01"
        assert place.below == step_key(StepName("load"), 1)


def test_every_holder_has_a_span_of_its_own() -> None:
    assert work_place(command(claim=1)).key != work_place(command(claim=2)).key
    assert work_place(frame([1], attempt=1)).key != work_place(frame([1], attempt=2)).key


def test_names_of_work_hold_no_data() -> None:
    names = work_names(frame(["tulip-4711"]), WorkerId("w1"))
    assert names["noetl.rows"] == 1
    assert "tulip" not in str(names)

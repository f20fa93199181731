"""Code of a playbook is stopped inside of its own lines, and never beyond them."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from noetl.spark import driver_program
from noetl.spark.driver_program import Running

WAIT_SECONDS_MAX = 60.0


class Job:
    """Runs code in a thread, as the driver does, and says how both ended."""

    def __init__(self, code: Callable[[], Any], afterwards: Callable[[], Any]) -> None:
        self.running = Running()
        self.ends: list[Any] = []
        self._code = code
        self._afterwards = afterwards
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ends.append(self.running.called(self._code))
            self.ends.append(self._afterwards())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it should not be
            self.ends.append(error)

    def wait(self) -> list[Any]:
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive()
        return self.ends


def test_code_that_runs_is_stopped() -> None:
    begun = Event()

    def code() -> None:
        while True:
            begun.set()

    job = Job(code, lambda: "over")
    assert begun.wait(WAIT_SECONDS_MAX)
    job.running.stop()
    assert job.wait() == [None, "over"]


def test_a_job_that_has_left_its_code_is_not_stopped_any_more() -> None:
    left, stopped = Event(), Event()

    def afterwards() -> bool:
        left.set()
        return stopped.wait(WAIT_SECONDS_MAX)

    job = Job(lambda: "done", afterwards)
    assert left.wait(WAIT_SECONDS_MAX)
    job.running.stop()
    stopped.set()
    assert job.wait() == ["done", True]


def test_a_stop_that_comes_while_the_code_is_left_hits_nothing_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, stopped = Event(), Event(), Event()
    at_once = driver_program.raise_in

    def late(thread: int, error: type[BaseException] | None) -> None:
        """The code ends between the look at it and the stop."""
        if error is not None:
            may_end.set()
            while job.running.code_in is not None:
                pass
        at_once(thread, error)

    def code() -> str:
        begun.set()
        may_end.wait(WAIT_SECONDS_MAX)
        return "done"

    monkeypatch.setattr(driver_program, "raise_in", late)
    job = Job(code, lambda: stopped.wait(WAIT_SECONDS_MAX))
    assert begun.wait(WAIT_SECONDS_MAX)
    job.running.stop()
    stopped.set()
    assert job.wait() == ["done", True]


def test_what_code_raises_comes_out_of_it() -> None:
    running = Running()
    with pytest.raises(ZeroDivisionError):
        running.called(lambda: 1 // 0)
    assert running.code_in is None

"""The names that a row's templates see, kept current while tasks end and `set` writes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from noetl.domain.execution.names import WRITES_BYTES_MAX, all_assigned, assigned
from noetl.domain.playbook.loop import ITERATOR
from noetl.domain.playbook.values import SetScope
from noetl.kernel import canonical_json
from noetl.pipeline.facts_view import FactsView
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.references import opened, shown
from noetl.templates import places
from noetl.templates.bindings import Bindings, all_of
from noetl.templates.layered import Outcome, StoredResult
from noetl.templates.reference import Reference

_HIDDEN: Final = "keychain"
_AGAIN: Final = ("result", "response")  # other names for what goes by its own name, too


class Names:
    """Maps are replaced, never changed in place: a template may have handed one on."""

    __slots__ = (
        "_bare", "_base", "_ctx", "_in_iteration", "_job", "_keychain", "_may_refer", "_placed",
        "_seen", "_sizes", "_task", "_view",
        "done", "has_stored", "previous", "succeeded", "writes",
    )  # fmt: skip

    def __init__(self, job: Job, view: FactsView, keychain: Mapping[str, Any] | None) -> None:
        self.done: dict[str, Any] = {}  # results of tasks, in the order they ended
        self.previous: Outcome | None = None
        self.succeeded: Any = None  # the result of the last task that did
        self.has_stored = False  # whether a task of this row has given a table that is stored
        self._sizes: dict[str, int] = {}
        self.writes: dict[str, Any] = {}  # to `ctx`, by path, in the order they were made
        self._job = job
        self._view = view
        self._keychain = keychain
        self._may_refer = view.has_references or _refers(job)
        self._ctx: Mapping[str, Any] = job.ctx
        self._in_iteration: dict[str, Any] = {}
        self._bare: dict[str, Any] = {}
        self._placed: Bindings | None = None  # the base without what is written to `iter`
        self._base: Bindings | None = None
        self._seen: Bindings | None = None
        self._task: tuple[places.Task, Bindings] | None = None

    @property
    def has_secrets(self) -> bool:
        return self._keychain is not None

    @property
    def may_refer(self) -> bool:
        """Whether anything in sight may stand for a payload."""
        return self._may_refer or (
            bool(self._ctx) and any(isinstance(each, Reference) for each in self._ctx.values())
        )

    def write(self, scope: SetScope, path: str, value: Any) -> None:
        if scope == "iter":
            self._in_iteration = {**self._in_iteration, path: value}
        elif scope == "task":
            self._bare = assigned(self._bare, path, value)
        else:
            self._weigh(path, value)
            self.writes.pop(path, None)
            self.writes[path] = value
            self._ctx = assigned(dict(self._ctx), path, value)
            self._placed = None
        self._base = self._task = None

    def _weigh(self, path: str, value: Any) -> None:
        """What goes to `ctx` goes into the log: it must not grow with the data."""
        self._sizes[path] = len(canonical_json.encode(value))
        if sum(self._sizes.values()) > WRITES_BYTES_MAX:
            message = f"`set` writes more than {WRITES_BYTES_MAX:,} bytes to ctx with {path!r}"
            raise failed("schema", f"{message}; leave large values in the step's result")

    def ended(self, task: str, outcome: Outcome, *, has_result: bool) -> None:
        """A task that ran before leaves its old place: the last pass counts."""
        self.previous = outcome
        if outcome.status != "error":
            self.succeeded = outcome.result
        self.done.pop(task, None)
        if has_result:
            self.done[task] = outcome.result
            self.has_stored = self.has_stored or isinstance(outcome.result, StoredResult)
        self._task = None

    def base(self) -> Bindings:
        """Everything but what belongs to a task."""
        seen = self._view.bindings()
        if self._base is None or self._seen is not seen:
            if self._seen is not seen:
                self._seen, self._placed = seen, None
            self._base = self._built(seen)
            self._task = None
        return self._base

    def for_task(self, name: str, attempt: int, given: Mapping[str, Any]) -> Bindings:
        base = self.base()
        if self._task is not None:
            task, bindings = self._task
            if task.input is given and task.attempt == attempt and task.name == name:
                return bindings
        task = places.Task(
            name=name,
            attempt=attempt,
            done=self.done,
            previous=self.previous,
            succeeded=self.succeeded,
            bare=self._bare,
            input=given,
        )
        bindings = places.for_task(base, task)
        self._task = (task, bindings)
        return bindings

    def surroundings(self) -> "Surroundings":
        return Surroundings(lambda: _plain(self.base().over(self.done).over(self._bare)))

    def _built(self, seen: Bindings) -> Bindings:
        if self._placed is None:
            self._placed = self._in_place(self._with_ctx(seen))
        bindings = self._placed
        own: dict[str, Any] = {} if self._keychain is None else {"keychain": self._keychain}
        if self._in_iteration:
            own["iter"] = all_assigned(_iteration(bindings), self._in_iteration)
        return bindings.define(own) if own else bindings

    def _with_ctx(self, bindings: Bindings) -> Bindings:
        facts = self._job.facts
        if self._ctx is facts.ctx:
            return bindings
        ctx = opened(dict(self._ctx), self._view.fetched)
        return bindings.define({"ctx": {**facts.workload, **ctx}}).over(ctx)

    def _in_place(self, bindings: Bindings) -> Bindings:
        """In a row of a loop, in a frame, or in neither."""
        row, frame, fetched = self._job.iteration, self._job.frame, self._view.fetched
        if row is not None:
            if fetched:
                row = msgspec.structs.replace(row, item=opened(row.item, fetched))
            if frame is None:
                return places.for_iteration(bindings, row)
            return places.for_frame_row(bindings, frame, row)
        if frame is None:
            return bindings
        loop = self._job.step.loop
        if fetched:
            frame = msgspec.structs.replace(frame, rows=opened(frame.rows, fetched))
        return places.for_frame(bindings, frame, ITERATOR if loop is None else loop.iterator)


class Surroundings(Mapping[str, Any]):
    """What a program may look at besides its input: made when it looks, and never a secret."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make
        self._made: dict[str, Any] | None = None

    def _names(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Any:
        return self._names()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def _refers(job: Job) -> bool:
    """Whether its row, or one of its rows, stands for a payload."""
    row, frame = job.iteration, job.frame
    return (row is not None and isinstance(row.item, Reference)) or (
        frame is not None and isinstance(frame.rows, Reference)
    )


def _iteration(bindings: Bindings) -> dict[str, Any]:
    return next((names["iter"] for names in bindings.own if "iter" in names), {})


def _plain(bindings: Bindings) -> dict[str, Any]:
    names = {name: shown(value) for name, value in all_of(bindings.handy).items()}
    for name in _AGAIN:
        names.pop(name, None)
    seen = {**all_of(bindings.layers), **all_of(bindings.own)}
    return names | {name: shown(value) for name, value in seen.items() if name != _HIDDEN}

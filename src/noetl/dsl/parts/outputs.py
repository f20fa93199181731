"""`output` blocks, from plain data: what is kept of a result, and hints that only others take."""

from typing import cast

from noetl.domain.playbook.values import Count, Output, OutputScope, ResultStore, Selection
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.steps import OUTPUT, SELECTION, STORE
from noetl.dsl.nodes import Items, Node, Scalar
from noetl.dsl.problems import Problems


def output(node: Node | None, problems: Problems) -> Output | None:
    fields = None if node is None else read(node, OUTPUT, problems)
    if fields is None:
        return None
    scope = cast(OutputScope, fields.text("scope") or "execution")
    if scope != "execution":
        message = f"`scope: {scope}` has no effect: a result lives as long as its execution"
        problems.warning(fields.values["scope"], message, "remove it")
    return Output(
        store=_store(fields, problems),
        select=selections(fields.get("output_select"), problems)
        + selections(fields.get("select"), problems),
        accumulate=fields.mapping("accumulate"),
        inline_bytes_max=_limit(fields, "inline_max_bytes", problems),
        preview_bytes_max=_limit(fields, "preview_max_bytes", problems),
        scope=scope,
        name=fields.text("as"),
    )


def selections(node: Node | None, problems: Problems) -> tuple[Selection, ...]:
    """Names, or `{path, as}`."""
    made = []
    for each in node.nodes if isinstance(node, Items) else ():
        if isinstance(each, Scalar) and isinstance(each.value, str):
            _warn_of_items(each, each.value, problems)
            made.append(Selection(path=each.value, name=each.value.rpartition(".")[2]))
            continue
        fields = read(each, SELECTION, problems)
        path = fields.text("path") if fields is not None else None
        if fields is not None and path is not None:
            _warn_of_items(fields.values["path"], path, problems)
            name = fields.text("as") or path.rpartition(".")[2]
            made.append(Selection(path=path, name=name))
    return tuple(made)


def _warn_of_items(node: Node, path: str, problems: Problems) -> None:
    """A path goes through names only: no field is ever found behind a bracket."""
    if "[" in path:
        message = f"{path!r} selects nothing: a path has names with dots, and no items of lists"
        fix = f"write {path.partition('[')[0]!r}" if not path.startswith("[") else "remove it"
        problems.warning(node, message, fix)


def _store(fields: Fields, problems: Problems) -> ResultStore:
    node = fields.get("store")
    store = None if node is None else read(node, STORE, problems)
    if store is None:
        return ResultStore()
    kind = store.text("kind") or "auto"
    if kind == "memory":
        message = "no result is kept in memory alone: `memory` means `auto` here"
        problems.warning(store.values["kind"], message, "write `kind: auto`")
    return ResultStore(
        kind=kind,
        bucket=store.text("bucket"),
        prefix=store.text("prefix"),
        ttl=store.plain("ttl"),
        compression=store.text("compression"),
        credential=store.text("credential"),
    )


def _limit(fields: Fields, name: str, problems: Problems) -> Count | None:
    """A plain number: what is kept of a result is settled before anything runs."""
    limit = fields.count(name)
    if isinstance(limit, str):
        message = f"{name!r} is a template and has no effect: it must be known before the run"
        problems.warning(fields.values[name], message, "write a number")
        return None
    return limit

"""Work of every shape is run again with what it saw then, and gives the same bytes."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.repair.scene import Scene, without_copies

SHAPES = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shapes, path: repair/shapes}
workload: {trace: "", base: 7}
workflow:
  - step: start
    tool: {kind: noop, result: "{{ 'x' * 200000 }}"}
    set: {ctx.sum: 0, ctx.mark: before}
    next: beads

  - step: beads
    desc: Rows see what the rows before them wrote, over more than one frame.
    loop:
      in: "{{ range(300) | list }}"
      iterator: bead
      spec: {mode: sequential, frame: {max_rows: 100}}
    tool:
      - name: thread
        kind: noop
        result: {bead: "{{ iter.bead }}", sum: "{{ ctx.sum }}", text: "{{ 'y' * 100 }}"}
        set: {ctx.sum: "{{ ctx.sum + iter.bead + workload.base }}"}
    next: whole

  - step: whole
    desc: A frame at once.
    loop:
      in: "{{ range(200) | list }}"
      iterator: row
      spec: {mode: parallel, frame: {max_rows: 100, process: frame}}
    tool:
      kind: python
      effects: none
      code: |
        result = [{"double": 2 * each, "text": "z" * 60} for each in row]
    next: some

  - step: some
    desc: Some rows fail, and the others go on.
    loop:
      in: "{{ range(200) | list }}"
      iterator: row
      spec: {mode: parallel, frame: {max_rows: 100}}
    spec: {policy: {failure: {mode: continue}}}
    tool:
      kind: python
      effects: none
      code: |
        if row % 7 == 0:
            raise ValueError(f"not {row}")
        result = {"row": row, "text": "w" * 60}
    next: table

  - step: table
    desc: Only reads.
    tool:
      kind: sqlite
      database: "{{ workload.trace }}"
      query: SELECT n, text FROM words ORDER BY n
    set: {ctx.mark: after}
    next: later

  - step: later
    desc: Sees the mark as it was when it was issued.
    tool: {kind: noop, result: "{{ ctx.mark * 60000 }}"}
    set: {ctx.mark: over}
"""


@pytest.fixture(scope="module")
def shapes(folder: Path) -> Scene:
    database = folder / "words.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE words (n INTEGER, text TEXT)")
        rows = [(n, f"word number {n}") for n in range(8000)]
        connection.executemany("INSERT INTO words VALUES (?, ?)", rows)
    connection.close()
    made = Scene(without_copies(folder / "shapes"), database)
    asyncio.run(made.run(SHAPES))
    return made


async def test_all_of_it_is_run_again_to_the_same_bytes(shapes: Scene) -> None:
    names = await shapes.named()
    lost = {name: named for name, named in names.items() if "@" in name}
    steps = {name.partition("/")[0].partition("@")[0] for name in lost}
    assert steps == {"start", "beads", "whole", "some", "table", "later"}
    before = {name: await shapes.bytes_of(named) for name, named in lost.items()}
    await shapes.delete(*lost.values())

    found = await shapes.verify(repair=True)

    assert [(each.uri, each.cannot) for each in found.findings if each.cannot] == []
    assert {name: await shapes.bytes_of(named) for name, named in lost.items()} == before


async def test_data_that_has_changed_since_is_not_taken_for_the_result(shapes: Scene) -> None:
    table = (await shapes.named())["table/0/0/1@1"]
    before = await shapes.bytes_of(table)
    await shapes.delete(table)
    with sqlite3.connect(shapes.trace) as connection:
        connection.execute("UPDATE words SET text = 'another' WHERE n = 17")
    connection.close()

    (finding,) = (await shapes.verify(repair=True)).findings
    await shapes.write(table, before)

    assert finding.cannot is not None
    assert finding.cannot.startswith("running it again gave other bytes")


async def test_a_target_that_is_gone_is_named(shapes: Scene) -> None:
    table = (await shapes.named())["table/0/0/1@1"]
    before = await shapes.bytes_of(table)
    await shapes.delete(table)
    aside = shapes.trace.rename(shapes.trace.with_suffix(".gone"))

    (finding,) = (await shapes.verify(repair=True)).findings
    shapes.trace.unlink(missing_ok=True)
    aside.rename(shapes.trace)
    await shapes.write(table, before)

    assert finding.cannot is not None
    assert finding.cannot.startswith("running it again failed: ")

"""A playbook of effects in every place where one can be: what it wishes, and what must come out."""

from typing import Any

from tests.crash.counters import COUNTING, HONOURING
from tests.crash.once_targets import REFUSED

VISITS = 2
ROWS = 6
BEADS = 3
ODD = 3  # of these one is refused by its target

_CAREFUL = """
        effects: at_most_once
        spec:
          policy:
            rules:
              - when: "{{ output.error is defined and output.error.kind == 'effect_in_doubt' }}"
                then: {do: continue}
"""

ONCE = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: once, path: crash/once}}
workload: {{url: "", me: "", words: [taken, {REFUSED}, taken]}}
workflow:
  - step: start
    tool: {{kind: noop, result: {{text: "{{{{ 'x' * 3000 }}}}"}}}}
    set: {{ctx.turn: 1, ctx.turned: [], ctx.sum: 0}}
    next: page

  - step: page
    desc: One tool, a small result, entered more than once.
    tool:
      kind: http
      method: POST
      url: "{{{{ url }}}}/counting/{{{{ me }}}}.page.{{{{ ctx.turn }}}}"
      json: {{turn: "{{{{ ctx.turn }}}}"}}
    set: {{ctx.turned: "{{{{ ctx.turned + [output.data.told.turn] }}}}"}}
    next:
      arcs:
        - step: page
          when: "{{{{ ctx.turn < {VISITS} }}}}"
          set: {{ctx.turn: "{{{{ ctx.turn + 1 }}}}"}}
        - {{step: fetch}}

  - step: fetch
    desc: One tool, a result of its own object.
    tool:
      kind: http
      method: POST
      url: "{{{{ url }}}}/honouring/{{{{ me }}}}.fetch"
      json: {{number: 5}}
    output: {{store: {{kind: object}}}}
    next: order

  - step: order
    desc: Several effects of one command, with small and with large results.
    tool:
      - name: reserve
        kind: http
        method: POST
        url: "{{{{ url }}}}/honouring/{{{{ me }}}}.reserve"
        json: {{number: "{{{{ fetch.data.told.number + 1 }}}}"}}
      - name: book
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.book"
        json: {{number: "{{{{ reserve.data.told.number + 1 }}}}"}}
        output: {{store: {{kind: object}}}}
      - name: charge
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.charge"
        json: {{number: 1}}
{_CAREFUL}
      - name: tell
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.tell"
        json: {{number: "{{{{ book.data.told.number + 1 }}}}"}}
    next: each

  - step: each
    desc: Rows side by side, whose outputs are too large for an event.
    loop:
      in: "{{{{ range({ROWS}) | list }}}}"
      iterator: row
      spec: {{mode: parallel, max_in_flight: 4, frame: {{max_rows: 3, max_attempts: 1000}}}}
    tool:
      - name: reserve
        kind: http
        method: POST
        url: "{{{{ url }}}}/honouring/{{{{ me }}}}.row.{{{{ iter.row }}}}"
        json: {{number: "{{{{ iter.row }}}}", text: "{{{{ start.text }}}}"}}
        output: {{store: {{kind: object}}}}
      - name: book
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.row.{{{{ iter.row }}}}"
        json: {{number: "{{{{ reserve.data.told.number + 10 }}}}", text: "{{{{ start.text }}}}"}}
    next: beads

  - step: beads
    desc: One row after the other, each sees what the one before it set.
    loop:
      in: "{{{{ range({BEADS}) | list }}}}"
      iterator: bead
      spec: {{mode: sequential, frame: {{max_rows: 2, max_attempts: 1000}}}}
    tool:
      - name: thread
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.bead.{{{{ iter.bead }}}}"
        json: {{bead: "{{{{ iter.bead }}}}"}}
        set: {{ctx.sum: "{{{{ ctx.sum + output.data.told.bead }}}}"}}
      - name: charge
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.charge.{{{{ iter.bead }}}}"
        json: {{number: 1}}
{_CAREFUL}
    next: odd

  - step: odd
    desc: A target refuses one of the rows, after it has done what it was told.
    loop:
      in: "{{{{ range({ODD}) | list }}}}"
      iterator: odd
      spec: {{mode: parallel, max_in_flight: 3, frame: {{max_rows: 3, max_attempts: 1000}}}}
    spec: {{policy: {{failure: {{mode: continue}}}}}}
    tool:
      - name: book
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.odd.{{{{ iter.odd }}}}"
        json: {{number: "{{{{ iter.odd }}}}"}}
      - name: charge
        kind: http
        method: POST
        url: "{{{{ url }}}}/counting/{{{{ me }}}}.{{{{ words[iter.odd] }}}}.{{{{ iter.odd }}}}"
        json: {{number: 1}}
        effects: at_most_once
    next: done

  - step: done
    tool:
      kind: noop
      result:
        pages: "{{{{ ctx.turned }}}}"
        told: "{{{{ order.tell.data.told.number }}}}"
        booked: "{{{{ each.results | map(attribute='data.told.number') | list }}}}"
        sum: "{{{{ ctx.sum }}}}"
"""

RESULT: dict[str, Any] = {
    "pages": list(range(1, VISITS + 1)),
    "told": 8,
    "booked": [row + 10 for row in range(ROWS)],
    "sum": sum(range(BEADS)),
}


def cycles(execution: str) -> dict[str, str]:
    """Every wish of an execution, and the cycle that makes it."""
    words = ("taken", REFUSED, "taken")
    named = {
        **{f"{COUNTING}/.page.{turn}": f"page/{turn}/0/page/1" for turn in range(1, VISITS + 1)},
        f"{HONOURING}/.fetch": "fetch/1/0/fetch/1",
        f"{HONOURING}/.reserve": "order/1/0/reserve/1",
        f"{COUNTING}/.book": "order/1/0/book/1",
        f"{COUNTING}/.charge": "order/1/0/charge/1",
        f"{COUNTING}/.tell": "order/1/0/tell/1",
        **{f"{HONOURING}/.row.{row}": f"each/1/{row}/reserve/1" for row in range(ROWS)},
        **{f"{COUNTING}/.row.{row}": f"each/1/{row}/book/1" for row in range(ROWS)},
        **{f"{COUNTING}/.bead.{bead}": f"beads/1/{bead}/thread/1" for bead in range(BEADS)},
        **{f"{COUNTING}/.charge.{bead}": f"beads/1/{bead}/charge/1" for bead in range(BEADS)},
        **{f"{COUNTING}/.odd.{row}": f"odd/1/{row}/book/1" for row in range(ODD)},
        **{f"{COUNTING}/.{words[row]}.{row}": f"odd/1/{row}/charge/1" for row in range(ODD)},
    }
    return {
        wish.replace("/.", f"/{execution}."): f"{execution}/{cycle}"
        for wish, cycle in named.items()
    }


def is_careful(cycle: str) -> bool:
    """Whether it says `at_most_once`."""
    return "/charge/" in cycle

"""Playbooks with a bit of everything, whose result is the same however often they were killed."""

from typing import Any

ROWS = 12
PAGES = 3
BEADS = 5

_TRACE = """
        import os, time
        def seen(name):
            line = f"{name} {time.time()}\\n".encode()
            file = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, line)
            os.close(file)
"""

CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: crash/child}
workload: {url: "", number: 0}
workflow:
  - step: tell
    tool:
      kind: http
      method: POST
      url: "{{ url }}/counting/child"
      json: {number: "{{ number }}"}
    next: answer
  - step: answer
    tool: {kind: noop, result: {doubled: "{{ tell.data.told.number * 2 }}"}}
"""

MIXED = (
    """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: mixed, path: crash/mixed}
workload: {url: "", trace: "", rows: 12, pages: 3, beads: 5, has_child: true}
workflow:
  - step: start
    tool:
      kind: python
      input: {trace: "{{ trace }}", name: "{{ execution_id }}/start/1/0", rows: "{{ rows }}"}
      code: |
"""
    + _TRACE
    + """
        seen(name)
        result = {"rows": [{"number": n} for n in range(rows)]}
    set: {ctx.page: 1, ctx.turned: [], ctx.sum: 0}
    next: page

  - step: page
    desc: Comes back to itself.
    tool:
      kind: http
      method: POST
      url: "{{ url }}/counting/page"
      json: {page: "{{ ctx.page }}"}
    set: {ctx.turned: "{{ ctx.turned + [output.data.told.page] }}"}
    next:
      arcs:
        - {step: page, when: "{{ ctx.page < pages }}", set: {ctx.page: "{{ ctx.page + 1 }}"}}
        - {step: both}

  - step: both
    next:
      spec: {mode: inclusive}
      arcs: [{step: each}, {step: flaky}, {step: child, when: "{{ has_child }}"}]

  - step: each
    desc: Rows side by side, each with two effects.
    loop:
      in: "{{ start.rows }}"
      iterator: row
      spec: {mode: parallel, max_in_flight: 6, frame: {max_rows: 3, max_attempts: 1000}}
    tool:
      - name: reserve
        kind: http
        method: POST
        url: "{{ url }}/honouring/reserve"
        json: {number: "{{ iter.row.number }}"}
      - name: book
        kind: http
        method: POST
        url: "{{ url }}/counting/book"
        json: {number: "{{ reserve.data.told.number + 100 }}"}
    next: join

  - step: flaky
    desc: Refused once, then taken.
    tool:
      kind: http
      method: POST
      url: "{{ url }}/honouring/flaky"
      json: {number: 7}
      spec:
        policy:
          rules:
            - when: "{{ output.error.retryable }}"
              then: {do: retry, attempts: 5, delay: 0.01}
    next: join

  - step: child
    tool: {kind: playbook, path: crash/child, input: {url: "{{ url }}", number: 21}}
    next: join

  - step: join
    desc: Two effects of one command, and code between them.
    tool:
      - name: first
        kind: http
        method: POST
        url: "{{ url }}/honouring/first"
        json: {rows: "{{ each.results | length }}"}
      - name: between
        kind: python
        input:
          trace: "{{ trace }}"
          name: "{{ execution_id }}/join/1/0"
          told: "{{ first.data.told }}"
        code: |
"""
    + _TRACE.replace("\n        ", "\n          ")
    + """
          seen(name)
          result = {"rows": told["rows"] + 1}
      - name: second
        kind: http
        method: POST
        url: "{{ url }}/counting/second"
        json: {rows: "{{ between.rows }}"}
    next: beads

  - step: beads
    desc: One row after the other, each sees what the one before it set.
    loop:
      in: "{{ range(beads) | list }}"
      iterator: bead
      spec: {mode: sequential, frame: {max_rows: 2, max_attempts: 1000}}
    tool:
      - name: thread
        kind: http
        method: POST
        url: "{{ url }}/counting/thread"
        json: {bead: "{{ iter.bead }}", sum: "{{ ctx.sum }}"}
        set: {ctx.sum: "{{ ctx.sum + output.data.told.bead }}"}
      - name: look
        kind: python
        input:
          trace: "{{ trace }}"
          name: "{{ execution_id }}/beads/1/{{ iter._index }}"
          total: "{{ ctx.sum }}"
        code: |
"""
    + _TRACE.replace("\n        ", "\n          ")
    + """
          seen(name)
          result = {"sum": total}
    next: done

  - step: done
    tool:
      kind: noop
      result:
        pages: "{{ ctx.turned }}"
        booked: "{{ each.results | map(attribute='data.told.number') | list }}"
        flaky: "{{ flaky.data.told.number }}"
        doubled: "{{ child.doubled | default(42) }}"
        second: "{{ join.second.data.told.rows }}"
        sums: "{{ beads.results | map(attribute='sum') | list }}"
        sum: "{{ ctx.sum }}"
"""
)


def expected() -> dict[str, Any]:
    return {
        "pages": list(range(1, PAGES + 1)),
        "booked": [number + 100 for number in range(ROWS)],
        "flaky": 7,
        "doubled": 42,
        "second": ROWS + 1,
        "sums": [sum(range(bead + 1)) for bead in range(BEADS)],
        "sum": sum(range(BEADS)),
    }

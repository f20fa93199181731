"""Playbooks whose work is done by workers that only pretend."""

CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: simulation/child}
workflow:
  - step: one
    tool: {kind: noop}
    next: two
  - step: two
    tool: {kind: noop}
"""

WINDING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: winding, path: simulation/winding}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.round: 0}
    next:
      spec: {mode: inclusive}
      arcs: [{step: left}, {step: each}, {step: child}]
  - step: left
    desc: Comes back to itself.
    tool: {kind: noop}
    set: {ctx.round: "{{ ctx.round + 1 }}"}
    next:
      arcs: [{step: left, when: "{{ ctx.round < 3 }}"}, {step: join}]
  - step: each
    loop:
      in: "{{ range(9) | list }}"
      iterator: item
      spec:
        mode: parallel
        max_in_flight: 3
        frame: {max_rows: 2, row_concurrency: 1, max_attempts: 1000}
    tool: {kind: noop}
    next: join
  - step: child
    tool: {kind: noop}
    next: join
  - step: join
    tool: {kind: noop}
    next: beads
  - step: beads
    loop:
      in: "{{ range(5) | list }}"
      iterator: item
      spec: {mode: sequential, frame: {max_rows: 2, max_attempts: 1000}}
    tool: {kind: noop}
    next: shards
  - step: shards
    loop:
      in: "{{ range(6) | list }}"
      iterator: item
      spec:
        mode: fanout
        max_in_flight: 3
        frame: {max_attempts: 1000}
        fanout: {max_shard_retries: 1000, allow_partial: false}
    tool: {kind: noop}
    next: {arcs: [{step: shaky, when: "{{ fanin.status == 'complete' }}"}]}
  - step: shaky
    desc: Fails at every other visit.
    tool: {kind: noop}
    next:
      arcs:
        - {step: shaky, when: "{{ event.name == 'call.error' }}"}
        - {step: done}
  - step: done
    tool: {kind: noop}
"""

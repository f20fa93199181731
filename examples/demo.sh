#!/usr/bin/env bash
# A tour: run playbooks on the embedded engine, look at one in the past, prove its state.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export NOETL_HOME=.noetl/demo
noetl=.venv/bin/noetl

show() {
    printf '\n$ noetl'
    printf ' %q' "$@"
    printf '\n'
    "$noetl" "$@"
}

show run examples/hello.yaml --set name=Ada
show run examples/error_handling.yaml
show run examples/parallel_loop.yaml --set items=20000
execution=$("$noetl" executions list --limit 1 --json | head -1 | sed -E 's/.*"execution_id":"([0-9]+)".*/\1/')
show executions show "$execution"
show executions effects "$execution"
event=$("$noetl" executions events "$execution" --json | sed -n 20p | sed -E 's/.*"event_id":"([0-9]+)".*/\1/')
show replay state "$execution" --at "event=$event" # in the middle of the loop
show replay verify "$execution"

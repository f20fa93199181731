#!/usr/bin/env bash
# A tour: a small playbook, then the PFT workload as frames on Spark, with its bill and its proof.
# FACILITIES and PATIENTS set the size of the second; ENGINE=local runs it without Spark.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export NOETL_HOME=.noetl/demo
noetl=.venv/bin/noetl
facilities=${FACILITIES:-2}
patients=${PATIENTS:-100}

show() {
    printf '\n$ noetl'
    printf ' %q' "$@"
    printf '\n'
    "$noetl" "$@"
}

show run examples/hello.yaml --set name=Ada

mkdir -p "$NOETL_HOME"
.venv/bin/python examples/pft/api_server.py 0 >"$NOETL_HOME/api.address" &
api=$!
trap 'kill "$api" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    [ -s "$NOETL_HOME/api.address" ] && break
    sleep 0.1
done
address=$(sed 's/listening on //' "$NOETL_HOME/api.address")

NOETL_STAGE_ENGINE=${ENGINE:-spark} show run examples/pft/pft_sqlite.yaml \
    --set "api=$address" --set "database=$NOETL_HOME/pft.db" \
    --set "num_facilities=$facilities" --set "patients_per_facility=$patients"
execution=$("$noetl" executions list --limit 1 --json | head -1 | sed -E 's/.*"execution_id":"([0-9]+)".*/\1/')

printf '\nWhat it cost:\n'
"$noetl" executions events "$execution" --all --json | .venv/bin/python examples/pft/summary.py
printf '\nThe same state from its events alone:\n'
show replay verify "$execution"

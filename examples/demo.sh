#!/usr/bin/env bash
# A tour: a small playbook, then the PFT workload as frames on Spark, with its bill and its proof.
# FACILITIES and PATIENTS set the size of the second; ENGINE=local runs it without Spark.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export NOETL_HOME=${DEMO_HOME:-.noetl/demo}
programs=${DEMO_PROGRAMS:-.venv/bin}
noetl=$programs/noetl
facilities=${FACILITIES:-2}
patients=${PATIENTS:-100}

show() {
    printf '\n$ noetl'
    printf ' %q' "$@"
    printf '\n'
    "$noetl" "$@"
}

printf '$ export NOETL_HOME=%s\n' "$NOETL_HOME"
show run examples/hello.yaml --set name=Ada

mkdir -p "$NOETL_HOME"
: >"$NOETL_HOME/api.address" # that of an earlier run is not this one's
"$programs/python" examples/pft/api_server.py 0 >"$NOETL_HOME/api.address" &
api=$!
trap 'kill "$api" 2>/dev/null || true' EXIT
until [ -s "$NOETL_HOME/api.address" ]; do
    kill -0 "$api" 2>/dev/null || { echo "the API of the demo did not start" >&2; exit 1; }
    sleep 0.1
done
address=$(sed 's/listening on //' "$NOETL_HOME/api.address")

# The first loop waits until Spark is up; `auto` would let local workers begin.
export NOETL_STAGE_ENGINE=${ENGINE:-spark}
printf '\n$ export NOETL_STAGE_ENGINE=%s' "$NOETL_STAGE_ENGINE"
show run examples/pft/pft_sqlite.yaml \
    --set "api=$address" --set "database=$NOETL_HOME/pft.db" \
    --set "num_facilities=$facilities" --set "patients_per_facility=$patients"
execution=$("$noetl" executions list --limit 1 --json | head -1 | sed -E 's/.*"execution_id":"([0-9]+)".*/\1/')

printf '\nWhat it cost:\n'
"$noetl" executions events "$execution" --all --json | "$programs/python" examples/pft/summary.py
printf '\nThe same state from its events alone:\n'
"$noetl" replay snapshot "$execution" >/dev/null
show replay verify "$execution"

printf '\nLook around:\n'
cat <<END
source .venv/bin/activate; export NOETL_HOME=$NOETL_HOME
noetl executions show $execution
noetl executions frames $execution           # who had which rows
noetl executions trace $execution validate   # where its result came from
noetl dev                                              # the same in a browser, and behind HTTP
END

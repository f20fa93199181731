#!/usr/bin/env bash
# The whole suite, JOBS files at a time. A few tests that fail beside others run once more, alone: a
# crowded machine can use up a test's patience, a defect fails twice. Both runs are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${1:?"how many files at a time"}
again_max=5
failed=.pytest_cache/v/cache/lastfailed

rm -f "$failed"
code=0
.venv/bin/python -m pytest -n "$jobs" --dist loadfile --no-loadscope-reorder || code=$?
# 1: tests ran and some failed. Anything else (a broken import, Ctrl-C) is not cured by another go.
[ "$code" = 1 ] && [ -s "$failed" ] || exit "$code"

count=$(.venv/bin/python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$failed")
[ "$count" -le "$again_max" ] || exit "$code"
echo "test: $count failed beside others; alone:"
.venv/bin/python -m pytest --last-failed --last-failed-no-failures none
echo "test: passed, $count of them only alone; that is worth a look"

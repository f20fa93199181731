#!/usr/bin/env bash
# Runs a command whose temporary files lie in memory, where there is room: tests kill processes and
# cut no power, so flushing to a disk shows nothing and takes its time.
set -euo pipefail

room_kb_min=$((4 * 1024 * 1024))
room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1 || true)
free=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)
if [ "${room:-0}" -lt "$room_kb_min" ] || [ "${free:-0}" -lt "$room_kb_min" ]; then
    exec "$@"
fi
folder=$(mktemp -d /dev/shm/tests-of-noetl.XXXXXX)
chmod 711 "$folder" # servers that root starts as another user pass through it
trap 'rm -rf "$folder"' EXIT
PYTEST_DEBUG_TEMPROOT=$folder TMPDIR=$folder "$@"

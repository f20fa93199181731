#!/usr/bin/env bash
# Rewrite requirements/dev.txt from pyproject.toml: every version exact, every file by hash, for every
# supported Python and platform. The result names no host, so it works with any index.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv

uv_compile() {
    "$work/venv/bin/uv" pip compile --quiet --no-config --no-header --upgrade \
        --universal --python-version 3.11 --generate-hashes \
        --all-extras --group test --output-file "$work/pins.txt" pyproject.toml
}
# Some machines keep their certificates in the system store only, which uv reads when asked.
uv_compile || UV_SYSTEM_CERTS=1 uv_compile

{
    echo "# Written by 'make lock' from pyproject.toml. Do not edit by hand."
    # Whatever names an index, an address or a path stays on the machine it came from.
    grep -vE '^[[:space:]]*(#.*)?(--(extra-)?index-url|--find-links|--trusted-host|-i |-f )|://' \
        "$work/pins.txt"
} >"$work/dev.txt"

if grep -nE '://|@ |(^|[^[:alnum:]_.])/[[:alnum:]_.-]+/' "$work/dev.txt"; then
    echo "lock: the lines above name an address or a path; requirements/dev.txt is unchanged" >&2
    exit 1
fi
cp "$work/dev.txt" requirements/dev.txt
echo "lock: requirements/dev.txt holds $(grep -c '==' requirements/dev.txt) packages; run 'make setup'" >&2

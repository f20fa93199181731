#!/usr/bin/env bash
# Make .venv: find a Python, install the pinned packages, then this project in editable mode.
# Everything is written to stderr, so that a target which prints data can depend on it.
# A stamp inside .venv says what it was made from; when that still holds, nothing is done.
set -euo pipefail
exec 1>&2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

venv=.venv
stamp=$venv/setup.stamp
pins=requirements/dev.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0
unset PYTHONHOME PYTHONPATH

say() { echo "setup: $*"; }
die() {
    say "$@"
    exit 1
}

# Print "3.12.1" if this interpreter runs and suits us. A version manager's stand-in can exist and
# still fail, so being on the PATH proves nothing.
version_of() {
    "$1" -c '
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(1)
print(".".join(map(str, sys.version_info[:3])))' </dev/null 2>/dev/null
}

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        version_of "$PYTHON" >/dev/null || die "PYTHON=$PYTHON is not a working Python 3.11 to 3.13"
        echo "$PYTHON" >&3
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if version_of "$candidate" >/dev/null; then
            echo "$candidate" >&3
            return
        fi
    done
    die "no Python 3.11, 3.12 or 3.13 found; install one, or name it: make setup PYTHON=/path/to/python"
}

digest() { cat -- "$@" | cksum; }

# What .venv is made from. Scripts in it name their own path, so a moved checkout needs a new one.
environment_key() { echo "python $1, pins $(digest "$pins" scripts/setup.sh), at $root"; }
project_key() { echo "project $(digest pyproject.toml)"; }

# The version .venv should have: its own while that works, unless the caller asked for another.
wanted_version() {
    if [ -n "${PYTHON:-}" ]; then
        version_of "$PYTHON" || true
    else
        version_of "$venv/bin/python" || true
    fi
}

make_venv() {
    local python=$1
    rm -f "$stamp" # before the rest, so that no broken removal can look finished
    rm -rf "$venv"
    if "$python" -m venv "$venv" >/dev/null 2>&1; then
        pip=("$venv/bin/python" -m pip)
        return
    fi
    # Some systems ship Python without ensurepip; their own pip can fill the environment instead.
    rm -rf "$venv"
    if ! "$python" -m venv --without-pip "$venv"; then
        die "$python cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv"
    fi
    pip=("$python" -m pip --python "$venv/bin/python")
    if ! "${pip[@]}" --version >/dev/null 2>&1; then
        rm -rf "$venv"
        die "$python has neither ensurepip nor a pip that knows --python (22.3 or newer);" \
            "on Debian or Ubuntu: apt install python3-venv"
    fi
}

find_pip() {
    pip=("$venv/bin/python" -m pip)
    "${pip[@]}" --version >/dev/null 2>&1 && return
    local python
    python=$(find_python 3>&1 1>&2)
    pip=("$python" -m pip --python "$venv/bin/python")
}

install_pins() {
    say "installing pinned packages: 1.5 GB, so it takes some minutes"
    "${pip[@]}" install -qq --require-hashes -r "$pins"
}

install_project() {
    say "installing noetl in editable mode"
    "${pip[@]}" install -qq --no-deps --no-build-isolation --editable .
}

if command -v flock >/dev/null; then
    exec 9>.setup.lock
    flock --nonblock 9 || { say "waiting for another setup of this checkout"; flock 9; }
fi

version=$(wanted_version)
if [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "$(environment_key "$version")" ]; then
    [ "$(sed -n 2p "$stamp")" = "$(project_key)" ] && exit 0
    rm -f "$stamp"
    find_pip
else
    python=$(find_python 3>&1 1>&2)
    version=$(version_of "$python")
    say "making $venv with Python $version"
    make_venv "$python"
    install_pins
fi
install_project
{
    environment_key "$version"
    project_key
} >"$stamp.new"
mv "$stamp.new" "$stamp" # last, and in one step: a run that stopped half-way left no stamp
say "done"

"""Golden files are add-only: fail when one that is committed was changed or removed.

They hold what earlier builds wrote. Editing one would hide that this build no longer reads it.
"""

import subprocess
import sys
from pathlib import Path

GOLDEN = "tests/golden"
EXPLANATION = f":(exclude){GOLDEN}/README.md"  # says what is there; no build wrote it


def touched(root: Path) -> list[str]:
    """Golden files that a commit changed or removed, or that differ from HEAD now."""
    if not _git(root, "rev-parse", "--verify", "--quiet", "HEAD"):
        return []  # nothing is committed yet, so nothing is frozen
    options = ("--name-only", "--no-renames", "--diff-filter=a", "-z")
    now = _git(root, "diff", *options, "HEAD", "--", GOLDEN, EXPLANATION)
    ever = _git(root, "log", "--format=", *options, "--", GOLDEN, EXPLANATION)
    return sorted({name for name in f"{now}\0{ever}".split("\0") if name})


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and done.stderr:
        raise SystemExit(f"golden_guard: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    names = touched(Path(__file__).resolve().parent.parent)
    for name in names:
        print(f"{name}: a golden file never changes; add a new one beside it")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())

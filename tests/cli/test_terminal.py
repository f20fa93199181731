"""On a terminal the progress is drawn: steps with marks, loops with a bar."""

import os
import pty
import subprocess
from pathlib import Path

from tests.cli.shells import ANSWER_SECONDS_MAX, LOOP, NOETL, Shell

SLOW_LOOP = LOOP.replace("mode: parallel", "mode: sequential").replace(
    'code: "result = row * 2"', 'code: "import time; time.sleep(0.2); result = row"'
)


def on_terminal(shell: Shell, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, and all that was drawn on a terminal of 120 columns."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(NOETL), *arguments],
        cwd=shell.folder,
        env={**shell.environment, "TERM": "xterm-256color", "COLUMNS": "120"},
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        start_new_session=True,
    )
    os.close(slave)
    drawn = b""
    try:
        while chunk := os.read(master, 10_000):
            drawn += chunk
    except OSError:  # how Linux says that the other side is gone
        pass
    os.close(master)
    out, _ = process.communicate(timeout=ANSWER_SECONDS_MAX)
    return process.returncode, out, drawn.decode()


def test_steps_get_marks_and_loops_a_bar(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    code, out, drawn = on_terminal(shell, "run", shell.write("loop.yaml", SLOW_LOOP))
    assert (code, out) == (0, "6\n")
    assert drawn.count("✓") == 3
    assert "━" in drawn
    assert "of 6 rows" in drawn
    assert "1 frame out" in drawn
    assert "completed: execution" in drawn


def test_quiet_draws_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    _, out, drawn = on_terminal(shell, "run", shell.write("loop.yaml", LOOP), "--quiet")
    assert (out, drawn) == ("6\n", "")


def test_without_colours_when_asked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["NO_COLOR"] = "1"
    _, _, drawn = on_terminal(shell, "run", shell.write("loop.yaml", LOOP))
    assert "\x1b[32m" not in drawn
    assert "✓" in drawn

"""The tour of `make demo`, small and without Spark: it works, and it works again."""

import os
import subprocess
import sys
from pathlib import Path

from tests.examples.test_examples import EXAMPLES


def test_the_demo_runs_and_runs_again(tmp_path: Path) -> None:
    small = {"FACILITIES": "1", "PATIENTS": "5", "ENGINE": "local"}
    places = {"DEMO_HOME": str(tmp_path), "DEMO_PROGRAMS": str(Path(sys.executable).parent)}
    for _ in range(2):
        done = subprocess.run(
            ["bash", str(EXAMPLES / "demo.sh")],
            env={**os.environ, **small, **places},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        told = done.stdout
        assert '"wrong": []' in told
        assert "frames by        local" in told
        assert "proved           yes" in told

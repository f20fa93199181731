"""The guide to running does what it says: its playbook and every command of it, in order."""

import re
import subprocess
from pathlib import Path

from tests.cli.shells import ANSWER_SECONDS_MAX, NOETL, Shell

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "running.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_guide_works_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (playbook,) = blocks("yaml")
    shell.write("report.yaml", playbook)
    shell.environment["PATH"] = f"{NOETL.parent}:{shell.environment['PATH']}"
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 20
    execution = ""
    for command in commands:
        own = command.replace("/tmp/noetl-guide-", f"{tmp_path}/")
        done = subprocess.run(
            ["bash", "-c", re.sub(r"\bID\b", execution, own)],
            cwd=tmp_path,
            env=shell.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS_MAX,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if "noetl run" in command:
            told = re.search(r"(?:execution|show) (\d+)", done.stderr)
            execution = told[1] if told else execution

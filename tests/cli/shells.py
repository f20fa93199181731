"""The installed command in a folder of its own, as a person has it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOETL = Path(sys.executable).with_name("noetl")
ANSWER_SECONDS_MAX = 180.0
"""Far more than any command needs: a hanging test must end, not be timed."""

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
HELLO = f"""{HEAD}metadata: {{name: hello, path: guides/hello}}
workload: {{who: world, sign: {{mark: "!"}}}}
workflow:
  - step: start
    tool:
      kind: python
      input: {{who: "{{{{ workload.who }}}}", mark: "{{{{ workload.sign.mark }}}}"}}
      code: |
        result = {{"greeting": f"hello {{who}}{{mark}}"}}
"""
LOOP = f"""{HEAD}metadata: {{name: loop, path: guides/loop}}
workload: {{rows: 6}}
workflow:
  - {{step: start, tool: {{kind: noop}}, next: each}}
  - step: each
    loop: {{in: "{{{{ range(workload.rows) | list }}}}", iterator: row, spec: {{mode: parallel}}}}
    tool: {{kind: python, input: {{row: "{{{{ iter.row }}}}"}}, code: "result = row * 2"}}
    next: finish
  - step: finish
    tool: {{kind: python, input: {{n: "{{{{ each.stats.succeeded }}}}"}}, code: "result = n"}}
"""
NEEDS_FILE = f"""{HEAD}metadata: {{name: needs, path: guides/needs}}
workload: {{file: ready}}
workflow:
  - {{step: start, tool: {{kind: noop}}, next: looks}}
  - {{step: looks, tool: {{kind: shell, cmds: ["test -e {{{{ workload.file }}}}"]}}}}
"""
ROWS_NEED_FILE = f"""{HEAD}metadata: {{name: rows, path: guides/rows}}
workload: {{folder: .}}
workflow:
  - step: each
    loop: {{in: [0, 1, 2, 3, 4, 5], iterator: row, spec: {{mode: sequential}}}}
    tool:
      kind: shell
      cmds:
        - echo {{{{ iter.row }}}} >> {{{{ workload.folder }}}}/seen
        - test {{{{ iter.row }}}} != 3 -o -e {{{{ workload.folder }}}}/ready
    next: finish
  - step: finish
    tool: {{kind: python, input: {{n: "{{{{ each.stats.succeeded }}}}"}}, code: "result = n"}}
"""
ROW_WAITS = f"""{HEAD}metadata: {{name: waits, path: guides/waits}}
workload: {{folder: .}}
workflow:
  - step: each
    loop:
      in: [0, 1, 2, 3, 4, 5]
      iterator: row
      spec: {{mode: sequential, frame: {{max_rows: 1}}}}
    tool:
      kind: python
      input: {{row: "{{{{ iter.row }}}}", folder: "{{{{ workload.folder }}}}"}}
      code: |
        import pathlib, time
        if row == 3:
            pathlib.Path(folder, "begun").touch()
            while not pathlib.Path(folder, "ready").exists():
                time.sleep(0.02)
        result = row
"""
SLOW = f"""{HEAD}metadata: {{name: slow, path: guides/slow}}
workload: {{file: begun}}
workflow:
  - step: start
    tool:
      kind: python
      input: {{file: "{{{{ workload.file }}}}"}}
      code: |
        import pathlib, time
        pathlib.Path(file).touch()
        while not pathlib.Path(file + ".go").exists():
            time.sleep(0.02)
        result = "went"
"""


class Shell:
    """Runs the command with no settings but its home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""  # of a server, once there is one
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("NOETL_")
        } | {"NOETL_HOME": str(folder / ".noetl")}

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def noetl(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(NOETL), *arguments],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS_MAX,
        )

    def json(self, *arguments: str) -> Any:
        """The one object that the command answers with."""
        done = self.noetl(*arguments, "--json")
        assert done.stdout.count("\n") == 1, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def begin(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(NOETL), *arguments],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, name: str) -> None:
        """Wait for a file that a playbook makes."""
        path = self.folder / name
        waited = 0.0
        while not path.exists():
            subprocess.run(["sleep", "0.05"], check=True)
            waited += 0.05
            assert waited < ANSWER_SECONDS_MAX, f"{name} never came"


def interrupt(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGINT)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=ANSWER_SECONDS_MAX)
    return process.returncode, out, err

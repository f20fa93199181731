"""Lines on stderr: text for people, JSON for programs. Set up once, by the command that runs.

Whoever logs gives what a line is about as `extra=about(...)`; payloads and secrets have no place
in it.
"""

import json
import logging
import sys
from datetime import UTC, datetime

from noetl.bootstrap.settings import LogFormat, LogLevel, Settings
from noetl.kernel.ids import ExecutionId
from noetl.ports.telemetry import trace_of

_OURS = "noetl"


def configure_logs(settings: Settings, usual: LogLevel, form: LogFormat | None = None) -> LogFormat:
    """Levels are for our own lines; of libraries only warnings are shown."""
    form = settings.log_format or form or ("text" if sys.stderr.isatty() else "json")
    told = _ToStderr()
    told.setFormatter(_JsonLines() if form == "json" else _TextLines())
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, _ToStderr)]:
        root.removeHandler(earlier)
    root.addHandler(told)
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel((settings.log_level or usual).upper())
    return form


class _ToStderr(logging.Handler):
    """Looks for stderr at every line: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads any more: work goes on
            return


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record, "milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_about(record),
        }
        if "execution_id" in line:
            line["trace_id"] = trace_of(ExecutionId(line["execution_id"]))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about = ", ".join(f"{name} {value}" for name, value in _about(record).items())
        message = _one_line(record.getMessage())
        told = f"{_time(record, 'seconds')} {record.levelname.lower()}: {message}"
        told += f" ({_one_line(about)})" if about else ""
        if record.exc_info:
            told += "\n" + self.formatException(record.exc_info)
        return told


def _about(record: logging.LogRecord) -> dict[str, str]:
    return {name: str(value) for name, value in getattr(record, "about", {}).items()}


def _time(record: logging.LogRecord, precision: str) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec=precision) + "Z"


def _one_line(text: str) -> str:
    """What others say must not look like a line of ours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

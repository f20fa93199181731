"""The file that Spark reads its settings from. A command line would show them to everybody."""

from collections.abc import Mapping
from pathlib import Path


def write_conf(folder: Path, settings: Mapping[str, str]) -> None:
    """What a JVM started with SPARK_CONF_DIR `folder` takes as its settings."""
    place = folder / "spark-defaults.conf"
    place.unlink(missing_ok=True)
    place.touch(mode=0o600)
    place.write_text("".join(f"{name}={_escaped(text)}\n" for name, text in settings.items()))


def _escaped(text: str) -> str:
    r"""As Java reads such files: `\` starts an escape, and ends of lines end the value."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")

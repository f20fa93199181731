"""`noetl doctor`: is everything in order here, and if not, what to do."""

import asyncio
import sys

import click
import msgspec

from noetl.cli import options
from noetl.cli.doctor_checks import examine
from noetl.cli.doctor_findings import Finding
from noetl.cli.output import print_json, say, shown, tell


@click.command()
@click.option("--spark", "with_spark", is_flag=True, help="Start Spark, run one slot, end it.")
@options.as_json
def doctor(with_spark: bool, as_json: bool) -> None:
    """Check this installation, and say what to do.

    Looks at settings, home, log, payload store, clock, Python, extras, Java, Spark and disk.
    Each line says ok, warn or bad, and what to do. Exit code 1 when something is bad.

    \b
    noetl doctor --json
    noetl doctor --spark
    """
    findings = asyncio.run(examine(with_spark=with_spark))
    is_sound = all(finding.verdict != "bad" for finding in findings)
    if as_json:
        print_json({"ok": is_sound, "checks": [msgspec.to_builtins(each) for each in findings]})
    else:
        for finding in findings:
            say(_line(finding))
        tell(_summary(findings))
    sys.exit(0 if is_sound else 1)


def _summary(findings: list[Finding]) -> str:
    bad = [finding.name for finding in findings if finding.verdict == "bad"]
    if bad:
        return f"to be mended first: {', '.join(bad)}"
    return "everything that a run needs is in order; try: noetl run FILE"


def _line(finding: Finding) -> str:
    line = f"{finding.verdict:<5} {finding.name:<9} {shown(finding.message)}"
    return line if finding.advice is None else f"{line}; {shown(finding.advice)}"

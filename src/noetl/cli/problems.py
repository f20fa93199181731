"""What is wrong with a playbook, as lines that editors and people can follow."""

from noetl.cli.output import count
from noetl.dsl.check import Checked
from noetl.dsl.problems import Problem


def problem_line(file: str, problem: Problem) -> str:
    place = f"{file}:{problem.line}:{problem.column}"
    return f"{place}: {problem.severity}: {problem.message}; {problem.fix}"


def summary(answers: dict[str, Checked], failed: int) -> str:
    problems = [problem for checked in answers.values() for problem in checked.problems]
    errors = sum(problem.severity == "error" for problem in problems)
    return f"{count(errors, 'error')} in {failed} of {count(len(answers), 'file')}"

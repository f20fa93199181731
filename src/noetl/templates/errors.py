"""What can be wrong with a template, in words for its author.

TemplateError
├── TemplateInvalid     not a template that we can read
├── TemplateRefused     asks for something that templates may not do
├── TemplateTooLarge    goes past a named limit
└── TemplateFailed      could not be evaluated over these values
NeedsPayload            reaches past what is known of a large result; fetch it and ask again
"""

from typing import NamedTuple, Self

from noetl.kernel.errors import NoETLError

SHOWN_CHARS_MAX = 80

Path = tuple[str | int, ...]


class TemplateError(NoETLError):
    """Says what is wrong and what to do; never quotes a value that may be secret."""

    code = "template"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.template = ""  # shortened
        self.line: int | None = None
        self.path: Path = ()  # of the template inside the value that was rendered

    def on_line(self, line: int) -> Self:
        self.line = line
        return self

    def locate(self, source: str, line: int | None) -> Self:
        """The first place named is the innermost one, and stays."""
        if not self.template:
            self.line = line if self.line is None else self.line
            self.template = shortened(_line_of(source, self.line))
        return self

    def __str__(self) -> str:
        parts = [f"in {_shown(self.path)}"] if self.path else []
        parts += [f"line {self.line}"] if self.line is not None else []
        parts += [f"`{self.template}`"] if self.template else []
        return f"{', '.join(parts)}: {self.reason}" if parts else self.reason


class TemplateInvalid(TemplateError):
    code = "template_invalid"


class TemplateRefused(TemplateError):
    code = "template_refused"


class TemplateTooLarge(TemplateError):
    code = "template_too_large"


class TemplateFailed(TemplateError):
    code = "template_failed"


class Need(NamedTuple):
    """A part of a payload that an expression has to see."""

    payload: str
    path: Path


class NeedsPayload(NoETLError):
    """Raised inside an expression and caught by `render`, which answers with the need."""

    code = "needs_payload"
    retryable = True

    def __init__(self, need: Need) -> None:
        super().__init__(f"{need.payload} is needed at {_shown(need.path) or 'its root'}")
        self.need = need


def shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_CHARS_MAX else f"{flat[: SHOWN_CHARS_MAX - 1]}…"


def _line_of(source: str, line: int | None) -> str:
    lines = source.splitlines()
    return lines[line - 1] if line is not None and 0 < line <= len(lines) else source


def _shown(path: Path) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return shortened("".join(parts).lstrip("."))

"""SQL text as statements: where one ends, and what it is made of.

No grammar is needed for that: quotes, comments, brackets and the bodies of routines are enough.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

TokenKind = Literal["space", "quoted", "word", "placeholder", "sign"]

STATEMENT_WORDS_MAX = 100_000
"""Words of one statement that are looked at; no keyword that matters stands beyond them."""


TEXTS_KEPT_MAX = 256
TEXT_KEPT_CHARS_MAX = 16_384
"""A longer one was made by a template, and does not come back."""


class Dialect(NamedTuple):
    name: str
    token: re.Pattern[str]
    dollar_quotes: bool
    nested_comments: bool


class Token(NamedTuple):
    kind: TokenKind
    start: int
    end: int


class Statement(NamedTuple):
    text: str
    words: tuple[str, ...]  # upper-case, outside of quotes and comments
    calls: frozenset[str]  # words and quoted names with a bracket behind them, `.` if qualified


_LETTER = r"[^\W\d]"
_COMMENT = r"(?P<space>\s+|--[^\n]*)|(?P<comment>/\*)"
_STANDARD_QUOTES = r"'[^']*(?:''[^']*)*(?:'|\Z)|\"[^\"]*(?:\"\"[^\"]*)*(?:\"|\Z)"
_ESCAPED_QUOTES = r"[eE]'(?:[^'\\]+|\\.|'')*(?:'|\\?\Z)"
_WORD = rf"(?P<word>{_LETTER}[\w$]*)"
_NUMBER = r"(?P<number>\d[\w.]*)"
_PYTHON_PLACEHOLDERS = r"%\(\w+\)s|%s\b"

POSTGRES: Final = Dialect(
    "postgres",
    re.compile(
        rf"{_COMMENT}|(?P<quoted>{_ESCAPED_QUOTES}|{_STANDARD_QUOTES})"
        rf"|(?P<dollar>\$(?:{_LETTER}\w*)?\$)"
        rf"|(?P<placeholder>\$\d+|{_PYTHON_PLACEHOLDERS}|(?<![\w\]):]):{_LETTER}\w*)"
        rf"|{_WORD}|{_NUMBER}|(?P<sign>::|.)",
        re.DOTALL,
    ),
    dollar_quotes=True,
    nested_comments=True,
)
DUCKDB: Final = Dialect(
    "duckdb",
    re.compile(
        rf"{_COMMENT}|(?P<quoted>{_ESCAPED_QUOTES}|{_STANDARD_QUOTES})"
        rf"|(?P<dollar>\$(?:{_LETTER}\w*)?\$)"
        rf"|(?P<placeholder>\$\w+|\?|{_PYTHON_PLACEHOLDERS}|(?<![\w\]):]):{_LETTER}\w*)"
        rf"|{_WORD}|{_NUMBER}|(?P<sign>::|.)",
        re.DOTALL,
    ),
    dollar_quotes=True,
    nested_comments=True,
)
SQLITE: Final = Dialect(
    "sqlite",
    re.compile(
        rf"{_COMMENT}|(?P<quoted>{_STANDARD_QUOTES}|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z))"
        rf"|(?P<placeholder>[$@]\w+|\?\d*|{_PYTHON_PLACEHOLDERS}|(?<![\w\]):]):{_LETTER}\w*)"
        rf"|{_WORD}|{_NUMBER}|(?P<sign>::|.)",
        re.DOTALL,
    ),
    dollar_quotes=False,
    nested_comments=False,
)

_SPARK_COMMENT = r"(?P<space>\s+|--(?:\\\n|[^\r\n])*)|(?P<comment>/\*)"
_SPARK_QUOTES = (
    r"[rR](?:'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z))"
    r"|'(?:[^'\\]+|\\.|'')*(?:'|\\?\Z)|\"(?:[^\"\\]+|\\.|\"\")*(?:\"|\\?\Z)"
    r"|`[^`]*(?:``[^`]*)*(?:`|\Z)"
)
SPARK: Final = Dialect(
    "spark",
    re.compile(
        rf"{_SPARK_COMMENT}|(?P<quoted>{_SPARK_QUOTES})|(?P<dollar>\$(?:{_LETTER}\w*)?\$)"
        rf"|(?P<word>{_LETTER}\w*)|{_NUMBER}|(?P<sign>::|.)",
        re.DOTALL,
    ),
    dollar_quotes=True,
    nested_comments=True,
)

_NAMING = frozenset({"INTO", "AS"})
_ROUTINES = frozenset({"FUNCTION", "PROCEDURE", "TRIGGER"})
_ROUTINE_WORDS_MAX = 6  # CREATE OR REPLACE TEMPORARY … FUNCTION
_BLOCK_COMMENT_MARK = re.compile(r"/\*|\*/")


def tokens(text: str, dialect: Dialect) -> Iterator[Token]:
    """Every character belongs to one token. What is not closed reaches to the end."""
    position = 0
    while position < len(text):
        found = dialect.token.match(text, position)
        assert found is not None, "the last alternative matches any character"
        group = found.lastgroup or "sign"
        end = found.end()
        if group == "comment":
            group, end = "space", _comment_end(text, end, nested=dialect.nested_comments)
        elif group == "dollar":
            group, end = "quoted", _dollar_end(text, found.group(), end)
        elif group == "number":
            group = "sign"
        yield Token(group, position, end)  # type: ignore[arg-type]
        position = end


def _comment_end(text: str, position: int, *, nested: bool) -> int:
    depth = 1
    for mark in _BLOCK_COMMENT_MARK.finditer(text, position):
        if mark.group() == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if depth == 0:
            return mark.end()
    return len(text)


def _dollar_end(text: str, tag: str, position: int) -> int:
    closing = text.find(tag, position)
    return len(text) if closing < 0 else closing + len(tag)


class _Draft:
    """The statement that is being read."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.is_empty = True
        self._words: list[str] = []
        self._calls: set[str] = set()
        self._last = ""  # the word or quoted name just before
        self._is_qualified = False  # … with a schema before it
        self._after_dot = False
        self._is_named = False  # … as the table of an INSERT, or after AS: no function
        self._brackets = 0
        self._blocks = 0

    @property
    def is_open(self) -> bool:
        """Inside brackets or the body of a routine: a semicolon ends nothing."""
        return self._brackets > 0 or self._blocks > 0

    def add(self, kind: TokenKind, text: str) -> None:
        if kind == "space":
            return
        self.is_empty = False
        if kind == "word":
            self._add_word(text.upper())
        elif kind == "sign":
            self._add_sign(text)
        if not self._after_dot and text != ".":
            self._is_named = self._last in _NAMING
        self._last = text.upper() if kind == "word" else text if kind == "quoted" else ""
        self._is_qualified, self._after_dot = self._after_dot, text == "."

    def _add_word(self, word: str) -> None:
        if len(self._words) < STATEMENT_WORDS_MAX:
            self._words.append(word)
        if self._brackets > 0 or not self._is_routine():
            return
        if word == "BEGIN" or (word == "CASE" and self._blocks > 0):
            self._blocks += 1
        elif word == "END" and self._blocks > 0:
            self._blocks -= 1

    def _add_sign(self, sign: str) -> None:
        if sign == "(":
            self._brackets += 1
            if self._last and not self._is_named:
                self._calls.add("." if self._is_qualified else self._last)
        elif sign == ")":
            self._brackets = max(0, self._brackets - 1)

    def _is_routine(self) -> bool:
        head = self._words[:_ROUTINE_WORDS_MAX]
        return head[0] == "CREATE" and not _ROUTINES.isdisjoint(head)

    def statement(self, text: str, end: int) -> Statement:
        return Statement(text[self.start : end].strip(), tuple(self._words), frozenset(self._calls))


def split(text: str, dialect: Dialect) -> Sequence[Statement]:
    """The statements of a text, without their semicolons. Comments stay with the next one."""
    return _remembered(text, dialect) if len(text) <= TEXT_KEPT_CHARS_MAX else _split(text, dialect)


@lru_cache(TEXTS_KEPT_MAX)
def _remembered(text: str, dialect: Dialect) -> tuple[Statement, ...]:
    """Rows of a loop come with the same text, each with values of its own."""
    return tuple(_split(text, dialect))


def _split(text: str, dialect: Dialect) -> list[Statement]:
    found: list[Statement] = []
    draft = _Draft(0)
    for kind, start, end in tokens(text, dialect):
        if kind == "sign" and text[start] == ";" and not draft.is_open:
            if not draft.is_empty:
                found.append(draft.statement(text, start))
            draft = _Draft(end)
        else:
            draft.add(kind, text[start:end])
    if not draft.is_empty:
        found.append(draft.statement(text, len(text)))
    return found


_TRANSACTION_WORDS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "ABORT"})


def controls_transaction(statement: Statement) -> bool:
    """BEGIN, COMMIT and their like; not SAVEPOINT, which lives inside of one."""
    head = statement.words[:2]
    if not head:
        return False
    if head in (("START", "TRANSACTION"), ("PREPARE", "TRANSACTION")):
        return True
    to_savepoint = head[0] == "ROLLBACK" and "TO" in statement.words
    return head[0] in _TRANSACTION_WORDS and not to_savepoint

"""How much one render may cost. Every limit has a name, and every refusal says it."""

from noetl.templates.errors import TemplateTooLarge

TEMPLATE_CHARS_MAX = 262_144
BRACKET_DEPTH_MAX = 20  # a bracket costs the parser a dozen stack frames
EXPRESSION_DEPTH_MAX = 60  # Python's parser stops at 200 brackets; a level makes up to three
STATEMENT_DEPTH_MAX = 12  # Python's compiler stops at 20 nested blocks
STEPS_MAX = 250_000
CHARS_PER_STEP = 1_024  # reading text is quick, but not free
TEXT_CHARS_MAX = 33_554_432
RANGE_ITEMS_MAX = 100_000
WIDTH_MAX = 10_000
INTEGER_BITS_MAX = 4_096
DIGITS_MAX = 300
VALUE_DEPTH_MAX = 64


class Budget:
    """What is left for one render: steps to take and characters to make.

    A step is one round of a loop, or one element that a filter, a comparison or a copy looks at.
    """

    __slots__ = ("_chars_left", "_steps_left")

    def __init__(self) -> None:
        self._steps_left = STEPS_MAX
        self._chars_left = TEXT_CHARS_MAX

    @property
    def steps_left(self) -> int:
        return self._steps_left

    def spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise TemplateTooLarge(
                f"takes more than STEPS_MAX = {STEPS_MAX:,} steps;"
                " move the work into a tool, or loop over the list with a step"
            )

    def make(self, chars: int) -> None:
        """Called before the text exists where its length is known, else right after."""
        self._chars_left -= chars
        if self._chars_left < 0:
            raise TemplateTooLarge(
                f"makes more than TEXT_CHARS_MAX = {TEXT_CHARS_MAX:,} characters of text;"
                " pass large data as a value or by reference"
            )


def check_at_most(number: float, limit: int, what: str) -> None:
    if number > limit:
        raise TemplateTooLarge(f"{what} is {_counted(number)}, the limit is {limit:,}")


def _counted(number: float) -> str:
    # Python refuses to write out integers past some size.
    is_huge = isinstance(number, int) and number.bit_length() > INTEGER_BITS_MAX
    return "an enormous number" if is_huge else f"{number:,}"

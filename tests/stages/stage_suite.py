"""What every engine keeps of a stage: the same playbooks, the same answers, wherever rows run."""

from tests.stages.control_cases import ControlCases
from tests.stages.cursor_cases import CursorCases
from tests.stages.engine_case import SparkCase
from tests.stages.nested_cases import NestedCases
from tests.stages.row_cases import RowCases
from tests.stages.shard_cases import REDUCED_ON_SPARK, ShardCases


class StageSuite(RowCases, ShardCases, CursorCases, NestedCases, ControlCases):
    """An engine passes by subclassing, and giving its name and an `engine`."""


class SparkStageSuite(SparkCase, StageSuite):
    """The same on Spark, wherever it is: its slots do all of the work."""

    reduced = REDUCED_ON_SPARK

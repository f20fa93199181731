"""Code of playbooks in the driver's process cannot end that process."""

import pytest

from noetl.ports.spark_jobs import SparkOrder
from noetl.spark.work_code import called


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(3)\ndef main(spark): ...",
        "def main(spark):\n    raise SystemExit(3)",
    ],
    ids=["as it is read", "as it is called"],
)
def test_code_that_ends_its_process_fails_with_advice(code: str) -> None:
    with pytest.raises(RuntimeError, match="ended its process with 3; return"):
        called(SparkOrder(cycle="1/s/1/0/t/1", result="r", code=code), None, {})

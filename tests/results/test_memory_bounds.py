"""A worker keeps parts of a large result in memory, never the whole of it."""

from pathlib import Path

import pytest

from benchmarks.tiers import MEMORY_MB_MAX, in_a_process
from noetl.servers.seaweedfs import SeaweedS3Server


def test_a_table_of_500_mb_passes_through_files_in_bounded_memory(tmp_path: Path) -> None:
    outcome = in_a_process("table", tmp_path, "file:", {})
    assert outcome.mbytes > 500
    assert outcome.above_base_mb < MEMORY_MB_MAX


def test_a_json_value_of_15_mb_passes_through_files_in_bounded_memory(tmp_path: Path) -> None:
    outcome = in_a_process("json", tmp_path, "file:", {})
    assert outcome.mbytes > 15
    assert outcome.above_base_mb < MEMORY_MB_MAX


@pytest.mark.servers
def test_a_table_larger_than_the_bound_passes_through_a_bucket_in_bounded_memory(
    tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str
) -> None:
    url = f"s3://{s3_bucket}?endpoint={s3_server.endpoint}&region={s3_server.region}"
    keys = {
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
    }
    outcome = in_a_process("part", tmp_path, url, keys)
    assert outcome.mbytes > MEMORY_MB_MAX
    assert outcome.above_base_mb < MEMORY_MB_MAX

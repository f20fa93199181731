"""What a playbook calls the place of a result is recorded where it is true."""

import pytest

from noetl.pipeline.keeping import word_for


@pytest.mark.parametrize(
    ("url", "asked", "said"),
    [
        ("/srv/home/payloads/key", "disk", "disk"),
        ("/srv/home/payloads/key", "pvc", "pvc"),
        ("/srv/home/payloads/key", "gcs", "disk"),
        ("/srv/home/payloads/key", "kv", "disk"),
        ("s3://bucket/key", "minio", "minio"),
        ("s3://bucket/key", "pvc", "s3"),
        ("gs://bucket/key", "gcs", "gcs"),
        ("gs://bucket/key", "duckdb", "gcs"),
        ("az://bucket/key", "object", "object"),
        ("az://bucket/key", "s3", "azure"),
        ("http://server:8082/api/internal/objects/key", "s3", "object"),
    ],
)
def test_what_is_said_of_a_place_is_true(url: str, asked: str, said: str) -> None:
    assert word_for(asked, url) == said

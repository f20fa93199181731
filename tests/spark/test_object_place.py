"""Where Spark is told that results lie."""

from typing import Any

import pytest

from noetl.bootstrap.settings import Settings
from noetl.bootstrap.spark import results_place
from noetl.domain.events.values import ResultReference
from noetl.kernel.errors import RequestInvalid
from noetl.results.dataset_tables import Piece
from noetl.spark.data_source import PARTITION_BYTES, grouped, source_at
from noetl.spark.job_runner import session_of, tag_of
from noetl.spark.object_place import ObjectPlace, place_at


def test_a_home_without_settings_is_found_without_saying_more() -> None:
    assert ObjectPlace(url="file:///x").placement == Settings().placement
    assert results_place(Settings(home="/srv/noetl")).url == "file:///srv/noetl/payloads"


def test_no_key_gets_into_a_plan() -> None:
    url = "s3://bucket/results?endpoint=http://minio:9000&secret_access_key=hunter2&region=here"
    place = place_at(url, Settings().placement)
    assert place.url == "s3://bucket/results?endpoint=http%3A%2F%2Fminio%3A9000&region=here"
    assert place.address == f"{place.url}&secret_access_key=hunter2"
    assert "hunter2" not in repr(place)
    with pytest.raises(RequestInvalid, match="password"):
        place_at("s3://user:hunter2@bucket", Settings().placement)


def test_another_store_is_not_opened_with_the_keys_of_this_one() -> None:
    known = place_at("s3://bucket?secret_access_key=hunter2", Settings().placement)
    source = source_at(known)
    here: Any = source({"path": "noetl://a", "cell": "other"})
    there: Any = source({"path": "noetl://a", "url": "s3://other"})
    assert here._place.address == "s3://bucket?secret_access_key=hunter2"
    assert there._place.address == "s3://other"


def test_jobs_are_told_the_keys_of_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "who")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    place = results_place(Settings(payload_url="s3://bucket"))
    assert place.keys == "access_key_id=who&secret_access_key=hunter2"


def stored(uri: str, size: int) -> ResultReference:
    return ResultReference(type="object_store", uri=uri, byte_length=size)


def test_small_files_are_read_together_and_neighbours_stay_neighbours() -> None:
    sizes = [1, PARTITION_BYTES - 2, 5, PARTITION_BYTES * 2, 1]
    pieces = [Piece(stored(f"noetl://{size}", size), None, is_frame=True) for size in sizes]
    groups = grouped(pieces)
    assert [piece for group in groups for piece in group] == pieces
    assert [len(group) for group in groups] == [2, 1, 1, 1]


def test_whoever_does_a_cycle_again_knows_its_tag_and_session() -> None:
    assert tag_of("1/a/1/0/x/1") == tag_of("1/a/1/0/x/1") != tag_of("1/a/1/0/x/2")
    assert session_of("1/a/1/0/x/1") == session_of("1/a/1/0/x/1") != session_of("1/a/1/0/x/2")

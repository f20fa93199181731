"""Tables are scanned where they lie: pyarrow and DuckDB read an object without a copy of it."""

from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import feather, ipc

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.objectstore.connect import open_store
from noetl.ports.object_store import ObjectStore
from noetl.servers.seaweedfs import SeaweedS3Server

KEY = "noetl/execution=12/results/load/0/0/1.feather"
ROWS = 200_000


def feather_bytes() -> bytes:
    table = pa.table({"number": range(ROWS), "name": [f"row {row}" for row in range(ROWS)]})
    written = BytesIO()
    feather.write_feather(table, written, compression="uncompressed", chunksize=10_000)
    return written.getvalue()


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 100_000):
        yield data[start : start + 100_000]


def answer_of_duckdb(store: ObjectStore) -> tuple[int, str]:
    found = store.arrow_file(KEY)
    assert found is not None
    table = ds.dataset(found.path, filesystem=found.filesystem, format="feather")
    with duckdb.connect() as connection:
        connection.register("result", table)
        row = connection.execute(
            "select count(*), max(name) from result where number >= 199990"
        ).fetchone()
    assert row is not None
    return row


@pytest.fixture
def s3_store(s3_server: SeaweedS3Server, s3_bucket: str) -> ObjectStore:
    config = {
        "endpoint": s3_server.endpoint,
        "access_key_id": s3_server.access_key,
        "secret_access_key": s3_server.secret_key,
        "region": s3_server.region,
    }
    return open_store(f"s3://{s3_bucket}/some/folder", config, allow_http=True)


@pytest.mark.servers
async def test_duckdb_scans_a_feather_object_on_s3(s3_store: ObjectStore) -> None:
    await s3_store.create(KEY, chunks(feather_bytes()))

    assert answer_of_duckdb(s3_store) == (10, "row 199999")


async def test_duckdb_scans_a_feather_object_in_a_folder(tmp_path: Path) -> None:
    store = FilesystemObjectStore(tmp_path)
    await store.create(KEY, chunks(feather_bytes()))

    assert answer_of_duckdb(store) == (10, "row 199999")
    await store.close()


async def test_a_table_in_a_folder_is_mapped_into_memory(tmp_path: Path) -> None:
    store = FilesystemObjectStore(tmp_path)
    await store.create(KEY, feather_bytes())
    found = store.arrow_file(KEY)
    assert found is not None

    before = pa.total_allocated_bytes()
    with found.filesystem.open_input_file(found.path) as file:
        table = ipc.open_file(file).read_all()
        taken = pa.total_allocated_bytes() - before

    assert table.num_rows == ROWS
    assert taken < 100_000
    await store.close()

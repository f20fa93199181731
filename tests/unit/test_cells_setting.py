"""The registry of cells comes from the settings, and a mistake in it is said at the start."""

from pathlib import Path

import msgspec
import pytest

from noetl.bootstrap.cells import cell_registry, check_own_cell
from noetl.bootstrap.settings import Settings, load_settings
from noetl.domain.naming.cells import Cell, CellRegistry
from noetl.domain.naming.placement import CellPlacement
from noetl.kernel.errors import SettingInvalid

BLUE = '{"name": "blue", "provider": "s3", "url": "s3://blue", "region": "eu-1"}'
GREEN = '{"name": "green", "provider": "s3", "url": "s3://green", "region": "eu-1"}'


def test_the_placement_is_made_of_four_settings() -> None:
    assert load_settings({}).placement == CellPlacement("dev", "local", "local", 256)
    given = {
        "NOETL_RESULT_CELL": "blue",
        "NOETL_RESULT_CELL_ENV": "prod",
        "NOETL_RESULT_CELL_REGION": "us-east-1",
        "NOETL_RESULT_SHARD_COUNT": "16",
    }
    assert load_settings(given).placement == CellPlacement("prod", "us-east-1", "blue", 16)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOETL_RESULT_CELL", ""),
        ("NOETL_RESULT_CELL", "a/b"),
        ("NOETL_RESULT_CELL_ENV", ".."),
        ("NOETL_RESULT_CELL_REGION", "us east"),
        ("NOETL_RESULT_CELL_REGION", "us\n"),
        ("NOETL_RESULT_SHARD_COUNT", "0"),
        ("NOETL_RESULT_SHARD_COUNT", "10001"),
        ("NOETL_RESULT_SHARD_COUNT", "many"),
    ],
)
def test_a_value_that_no_key_can_have_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        load_settings({name: value})


@pytest.mark.parametrize(
    ("payload_url", "cell"),
    [
        (
            "file:",
            Cell(
                name="blue", provider="file", url="file:///srv/our%20home/payloads", region="eu-1"
            ),
        ),
        ("gs://bucket/a", Cell(name="blue", provider="gs", url="gs://bucket/a", region="eu-1")),
        (
            "s3://bucket?endpoint=http://minio:9000&secret_access_key=hush",
            Cell(
                name="blue",
                provider="s3",
                url="s3://bucket",
                region="eu-1",
                endpoint="http://minio:9000",
            ),
        ),
    ],
)
def test_without_a_registry_the_payloads_store_is_the_only_cell(
    payload_url: str, cell: Cell
) -> None:
    settings = Settings(
        home="/srv/our home",
        payload_url=payload_url,
        result_cell="blue",
        result_cell_region="eu-1",
    )
    registry = cell_registry(settings)
    assert registry.cells == (cell,)
    assert "hush" not in repr(registry)
    assert registry.find("any") == cell


@pytest.mark.parametrize("payload_url", ["ftp://host", "s3:", "s3://key:secret@bucket"])
def test_a_store_that_is_no_cell_is_refused(payload_url: str) -> None:
    with pytest.raises(SettingInvalid, match="NOETL_PAYLOAD_URL"):
        cell_registry(Settings(payload_url=payload_url))


def test_a_registry_is_json_or_a_file_of_it(tmp_path: Path) -> None:
    text = f'{{"cells": [{BLUE}, {GREEN}]}}'
    file = tmp_path / "cells.json"
    file.write_text(text)
    by_text = cell_registry(Settings(result_cells=f" {text}", result_cell="green"))
    by_file = cell_registry(Settings(result_cells=str(file), result_cell="green"))
    assert by_text == by_file
    assert by_file.find("blue").url == "s3://blue"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "neither JSON nor a file"),
        ("/nowhere/cells.json", "neither JSON nor a file"),
        ("{", "cannot be read"),
        ('{"cells": []}', "1 to"),
        (f'{{"cells": [{BLUE}, {BLUE}]}}', "twice"),
        (f'{{"cells": [{BLUE}, {GREEN}]}}', "which has blue, green"),
    ],
)
def test_a_registry_that_cannot_be_used_is_refused(text: str, advice: str) -> None:
    with pytest.raises(SettingInvalid, match=f"NOETL_RESULT_CELLS.*{advice}"):
        cell_registry(Settings(result_cells=text))


@pytest.mark.parametrize(
    ("payload_url", "url", "endpoint"),
    [
        ("file:", "file:", None),
        ("file:", "file:///srv/home/payloads", None),
        ("file:///shared", "file:///shared/", None),
        ("s3://blue", "s3://blue", None),
        ("s3://blue", "s3://blue", "http://minio:9000"),  # from the variables of the cloud
        ("s3://blue?endpoint=http://minio:9000", "s3://blue", "http://minio:9000/"),
        ("server:", "s3://blue", None),
    ],
)
def test_a_registry_may_describe_the_store_that_is_written_to(
    payload_url: str, url: str, endpoint: str | None
) -> None:
    check_own_cell(*registered(payload_url, url, endpoint))


@pytest.mark.parametrize(
    ("payload_url", "url", "endpoint"),
    [
        ("file:", "file:///shared", None),
        ("file:///shared", "file:", None),
        ("s3://blue", "s3://green", None),
        ("s3://blue", "gs://blue", None),
        ("s3://blue?endpoint=http://minio:9000", "s3://blue", "http://other:9000"),
    ],
)
def test_a_registry_that_sends_readers_elsewhere_is_refused(
    payload_url: str, url: str, endpoint: str | None
) -> None:
    with pytest.raises(SettingInvalid, match="NOETL_PAYLOAD_URL and the registry the same store"):
        check_own_cell(*registered(payload_url, url, endpoint))


def registered(payload_url: str, url: str, endpoint: str | None) -> tuple[Settings, CellRegistry]:
    described = {"name": "local", "provider": url.partition(":")[0], "url": url, "region": "eu-1"}
    cell = msgspec.convert({**described, "endpoint": endpoint}, Cell)
    return Settings(home="/srv/home", payload_url=payload_url), CellRegistry((cell,))

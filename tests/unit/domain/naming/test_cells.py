"""A registry of cells is checked before anybody relies on it."""

import msgspec
import pytest

from noetl.domain.naming.cells import (
    CELLS_MAX,
    Cell,
    CellDirectory,
    CellRegistry,
    Provider,
    registry_from_json,
)
from noetl.domain.naming.placement import CellPlacement
from noetl.kernel.errors import NameInvalid


def cell(name: str = "blue", url: str = "s3://results") -> Cell:
    return Cell(name=name, provider="s3", url=url, region="eu-1")


def test_where_there_is_one_cell_every_name_leads_to_it() -> None:
    registry = CellRegistry((cell("blue"),))
    assert registry.find("blue") == registry.find("green") == cell("blue")


def test_where_there_are_several_a_cell_has_its_name() -> None:
    registry = CellRegistry((cell("blue"), cell("green", "s3://other")))
    assert registry.find("green").url == "s3://other"
    with pytest.raises(NameInvalid, match="which has blue, green"):
        registry.find("red")


def test_two_cells_of_one_name_are_refused() -> None:
    with pytest.raises(NameInvalid, match="twice"):
        CellRegistry((cell(), cell()))


@pytest.mark.parametrize("count", [0, CELLS_MAX + 1])
def test_a_registry_is_neither_empty_nor_endless(count: int) -> None:
    with pytest.raises(NameInvalid, match="1 to"):
        CellRegistry(tuple(cell(f"c{number}") for number in range(count)))


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("file", "file:"),
        ("file", "file:///data/results"),
        ("s3", "s3://bucket/below"),
        ("gs", "gs://bucket"),
        ("az", "az://container"),
    ],
)
def test_a_cell_is_a_folder_or_a_bucket(provider: Provider, url: str) -> None:
    assert Cell(name="a", provider=provider, url=url, region="r").url == url


@pytest.mark.parametrize(
    ("provider", "url", "advice"),
    [
        ("s3", "gs://bucket", "begins with s3:"),
        ("s3", "s3:", "names no bucket"),
        ("s3", "s3://key:secret@bucket", "keys or options"),
        ("s3", "s3://bucket?secret_access_key=x", "keys or options"),
        ("s3", "s3://bucket#x", "keys or options"),
        ("file", "file:data", "no folder"),
        ("file", "file://host/data", "no folder"),
        ("file", "/data", "begins with file:"),
    ],
)
def test_what_is_no_place_or_tells_a_secret_is_refused(
    provider: Provider, url: str, advice: str
) -> None:
    with pytest.raises(NameInvalid, match=advice):
        Cell(name="a", provider=provider, url=url, region="r")


@pytest.mark.parametrize(
    "endpoint", ["", "minio:9000", "ftp://host", "http://", "http://key@host", "https://host?a=b"]
)
def test_an_endpoint_is_an_address(endpoint: str) -> None:
    with pytest.raises(NameInvalid, match="endpoint of cell 'a'"):
        Cell(name="a", provider="s3", url="s3://b", region="r", endpoint=endpoint)


def test_the_same_json_is_a_setting_and_an_answer() -> None:
    registry = registry_from_json(
        '{"cells": [{"name": "blue", "provider": "s3", "url": "s3://results", "region": "eu-1",'
        ' "endpoint": "http://minio:9000"}, {"name": "green", "provider": "gs",'
        ' "url": "gs://results", "region": "us"}]}'
    )
    answer = CellDirectory(placement=CellPlacement("dev", "eu-1", "blue"), cells=registry.cells)
    assert registry_from_json(msgspec.json.encode(answer)) == registry
    assert msgspec.to_builtins(answer)["cells"][1] == {
        "name": "green",
        "provider": "gs",
        "url": "gs://results",
        "region": "us",
    }


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": [{"name": "a"}]}', b"\xff", '{"cells": {}}']
)
def test_what_is_no_registry_is_refused(text: str | bytes) -> None:
    with pytest.raises(NameInvalid, match="registry of cells cannot be read"):
        registry_from_json(text)

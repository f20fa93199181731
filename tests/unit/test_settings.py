"""Settings come from the environment once, and a mistake in them is said at once."""

import re
from pathlib import Path

import pytest

from noetl.bootstrap.settings import PREFIX, Settings, load_settings
from noetl.bootstrap.settings_of_others import INSTEAD
from noetl.kernel.errors import SettingInvalid
from noetl.kernel.scope import Scope


def test_an_empty_environment_gives_the_defaults() -> None:
    assert load_settings({}) == Settings()


def test_values_are_read_by_name_and_type() -> None:
    settings = load_settings(
        {"NOETL_HOME": "/data", "NOETL_NODE": "7", "NOETL_TENANT_ID": "acme", "PATH": "/bin"}
    )
    assert settings.log_path == Path("/data/log.db")
    assert settings.node == 7
    assert settings.scope == Scope("acme", "default")


def test_a_misspelt_name_is_refused_and_the_right_one_offered() -> None:
    with pytest.raises(SettingInvalid, match="did you mean NOETL_LOG_URL"):
        load_settings({"NOETL_LOGURL": "sqlite:"})


def test_a_name_that_others_know_is_refused_with_ours() -> None:
    with pytest.raises(SettingInvalid, match=r"use NOETL_LEASE_SECONDS$"):
        load_settings({"NOETL_COMMAND_HEARTBEAT_TIMEOUT_SECONDS": "300"})


def test_what_is_offered_instead_is_a_setting() -> None:
    ours = {PREFIX + field.upper() for field in Settings.__struct_fields__}
    offered = {name for text in INSTEAD.values() for name in re.findall(r"NOETL_[A-Z_]+", text)}

    assert offered <= ours
    assert not ours & INSTEAD.keys()


@pytest.mark.parametrize("node", ["-1", "1024", "many"])
def test_a_value_out_of_range_is_refused(node: str) -> None:
    with pytest.raises(SettingInvalid, match="NOETL_NODE"):
        load_settings({"NOETL_NODE": node})


@pytest.mark.parametrize("name", ["NOETL_home", "NOETL_Home"])
def test_names_are_in_capitals(name: str) -> None:
    with pytest.raises(SettingInvalid, match="did you mean NOETL_HOME"):
        load_settings({name: "/data"})


@pytest.mark.parametrize("name", ["NOETL_HOME", "NOETL_TENANT_ID", "NOETL_ORGANIZATION_ID"])
def test_an_empty_value_is_refused(name: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        load_settings({name: ""})


def test_processes_have_nodes_of_their_own_by_default() -> None:
    assert 0 <= load_settings({}).id_node <= 1023
    assert load_settings({"NOETL_NODE": "0"}).id_node == 0

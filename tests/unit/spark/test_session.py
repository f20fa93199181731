"""Settings of a session: what is on by default, who wins, and what is not shown."""

from pathlib import Path

import pytest

from noetl.spark.session import SparkSettings, connect_url, spark_conf


def test_by_default_it_is_this_machine_with_tasks_tried_again() -> None:
    settings = SparkSettings()
    assert settings.is_local
    assert settings.is_on_loopback
    assert settings.url.endswith(",4]")


@pytest.mark.parametrize(
    ("master", "is_near"),
    [
        ("spark://127.0.0.1:7077", True),
        ("sc://localhost:15002/;token=x", True),
        ("spark://master.example:7077", False),
        ("k8s://https://127.example:6443", False),
        ("yarn", False),
    ],
)
def test_the_page_of_jobs_is_open_only_where_nobody_outside_reaches_it(
    master: str, is_near: bool
) -> None:
    conf = spark_conf(SparkSettings(master=master), Path("/f"))
    assert conf["spark.ui.enabled"] == str(is_near).lower()
    assert ("spark.driver.bindAddress" in conf) is is_near


def test_settings_of_the_operator_win() -> None:
    settings = SparkSettings(conf={"spark.ui.enabled": "false", "spark.own": "x"})
    conf = spark_conf(settings, Path("/f"))
    assert (conf["spark.ui.enabled"], conf["spark.own"]) == ("false", "x")
    assert conf["spark.scheduler.mode"] == "FAIR"


def test_a_later_driver_can_name_the_session_of_an_earlier_one() -> None:
    assert connect_url("sc://h:1") == "sc://h:1/;user_id=noetl"
    assert connect_url("sc://h:1/;token=t", "s") == "sc://h:1/;token=t;user_id=noetl;session_id=s"
    assert connect_url("sc://h:1/;user_id=me") == "sc://h:1/;user_id=me"


def test_secrets_are_not_shown() -> None:
    settings = SparkSettings(master="sc://h/;token=hidden;a=b", conf={"spark.x": "hidden"})
    assert "hidden" not in repr(settings)
    assert "a=b" in repr(settings)

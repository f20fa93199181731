"""Fixtures of the golden runs."""

from tests.golden_tests.golden_engine import nats_login, postgres_login, runs

__all__ = ["nats_login", "postgres_login", "runs"]

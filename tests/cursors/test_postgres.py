"""Loops over tables of work in PostgreSQL."""

import pytest

from tests.cursors.looping import Dialect, postgres_dialect
from tests.cursors.promises import CursorLoops


@pytest.mark.servers
class TestPostgres(CursorLoops):
    @pytest.fixture
    def dialect(self, postgres_dsn: str) -> Dialect:
        return postgres_dialect(postgres_dsn)

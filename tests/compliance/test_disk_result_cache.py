"""The disk cache keeps the promises of a layer."""

import shutil
from pathlib import Path

import pytest

from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.system.clock import utc_now
from noetl.testing.compliance.result_cache import Breaker, Opener, ResultCacheCompliance


class TestDiskResultCache(ResultCacheCompliance):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "payloads"

    @pytest.fixture
    def open_cache(self, folder: Path) -> Opener:
        return lambda budget_bytes: DiskResultCache(folder, utc_now, budget_bytes)

    @pytest.fixture
    def break_place(self, folder: Path) -> Breaker:
        def into_a_file() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.write_text("not a folder", encoding="ascii")

        return into_a_file

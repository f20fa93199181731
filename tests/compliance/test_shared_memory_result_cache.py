"""Shared memory keeps the promises of a layer."""

import shutil
from pathlib import Path

import pytest

from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.testing.compliance.result_cache import Breaker, Opener, ResultCacheCompliance


class TestSharedMemoryResultCache(ResultCacheCompliance):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "shm"

    @pytest.fixture
    def open_cache(self, folder: Path) -> Opener:
        def opened(budget_bytes: int) -> SharedMemoryResultCache:
            folder.mkdir(exist_ok=True)
            options = SharedMemoryOptions(
                home_id="home", node_id="node", folder=folder, budget_bytes=budget_bytes
            )
            return SharedMemoryResultCache(options, utc_now)

        return opened

    @pytest.fixture
    def break_place(self, folder: Path) -> Breaker:
        def into_a_file() -> None:
            shutil.rmtree(folder)
            folder.write_text("not a folder", encoding="ascii")

        return into_a_file

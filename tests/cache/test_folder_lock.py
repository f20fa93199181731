"""A lock file may go while others wait for it, and still only one of them holds it at a time."""

import fcntl
import os
import threading
from pathlib import Path

from noetl.adapters.cache.folder_lock import drop_lock, locked


def test_a_lock_that_is_held_or_needed_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        drop_lock(path, lambda: False)
        assert path.exists()
    drop_lock(path, lambda: True)
    assert path.exists()
    drop_lock(path, lambda: False)
    assert not path.exists()
    drop_lock(path, lambda: False)


def test_who_waited_for_a_file_that_went_takes_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    held: list[int] = []

    def wait() -> None:
        with locked(path) as own:
            held.append(os.fstat(own).st_ino == path.stat().st_ino)

    waiting = threading.Thread(target=wait)
    waiting.start()
    path.unlink()
    os.close(descriptor)
    waiting.join()
    assert held == [True]


def test_only_one_holds_it_while_it_comes_and_goes(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "lock", [0], [0]

    def take() -> None:
        for _ in range(200):
            with locked(path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1
            drop_lock(path, lambda: False)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]

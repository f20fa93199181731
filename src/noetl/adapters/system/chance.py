"""Random bytes from this machine, fit for keys."""

import os


def random_bytes(count: int) -> bytes:
    return os.urandom(count)

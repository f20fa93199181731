"""Random bytes from this machine, fit for keys."""

import os
import uuid


def random_bytes(count: int) -> bytes:
    return os.urandom(count)


def new_uuid() -> str:
    return str(uuid.uuid4())

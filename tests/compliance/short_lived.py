"""Keys that expire, as a cloud's own library gives them."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar


class ShortLived:
    """What the driver asks for keys; a test says which ones, and for how long they are good."""

    keys: ClassVar[dict[str, str]] = {}
    lifetime: ClassVar[timedelta | None] = None
    asked: ClassVar[int] = 0

    def __call__(self) -> dict[str, Any]:
        ShortLived.asked += 1
        lifetime = ShortLived.lifetime
        expires_at = None if lifetime is None else datetime.now(UTC) + lifetime
        return {**ShortLived.keys, "token": None, "expires_at": expires_at}

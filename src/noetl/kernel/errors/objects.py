"""What can be wrong with an object of a store."""

from noetl.kernel.errors.root import NoETLError


class ObjectError(NoETLError):
    code = "object"


class ObjectMissing(ObjectError):
    code = "object_missing"

    def __init__(self, url: str) -> None:
        super().__init__(f"there is no object {url}")
        self.url = url


class ObjectDiffers(ObjectError):
    code = "object_differs"

    def __init__(self, url: str, *, stored: str, given: str) -> None:
        super().__init__(
            f"{url} holds other bytes ({stored}) than the ones to be created ({given});"
            " objects never change: use another name"
        )
        self.url = url
        self.stored = stored
        self.given = given


class ObjectKeyInvalid(ObjectError):
    code = "object_key_invalid"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key!r} cannot name an object: use parts of at most 255 printable ASCII letters"
            " between single slashes, with no dot at the edge of a part; percent-encode the rest"
        )
        self.key = key

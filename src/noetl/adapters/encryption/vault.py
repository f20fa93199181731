"""Vault with AES-256-GCM: a form number, a nonce, then the text and its tag."""

import hmac
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from noetl.kernel.errors import SettingInvalid

KEY_BYTES = 32

_FORM = b"\x01"  # rows outlive the cipher: another way of locking takes the next number
_NONCE_BYTES = 12
_KEY_ID_BYTES = 8


class AesVault:
    def __init__(self, key: bytes, random_bytes: Callable[[int], bytes]) -> None:
        if len(key) != KEY_BYTES:
            raise SettingInvalid(f"the secret key has {len(key)} bytes; use {KEY_BYTES}")
        self._cipher = AESGCM(key)
        self._random_bytes = random_bytes
        self._key_id = hmac.digest(key, b"noetl key id", "sha256")[:_KEY_ID_BYTES].hex()

    @property
    def key_id(self) -> str:
        return self._key_id

    def lock(self, plain: bytes, context: bytes) -> bytes:
        nonce = self._random_bytes(_NONCE_BYTES)
        return _FORM + nonce + self._cipher.encrypt(nonce, plain, context)

    def unlock(self, locked: bytes, context: bytes) -> bytes | None:
        nonce, text = locked[1 : 1 + _NONCE_BYTES], locked[1 + _NONCE_BYTES :]
        if locked[:1] != _FORM or len(nonce) != _NONCE_BYTES:
            return None
        try:
            return self._cipher.decrypt(nonce, text, context)
        except InvalidTag:
            return None

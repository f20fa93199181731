"""What is locked opens with the same key in the same place, and nowhere else."""

import pytest

from noetl.adapters.encryption.vault import KEY_BYTES, AesVault
from noetl.adapters.system.chance import random_bytes
from noetl.kernel.errors import SettingInvalid

KEY = bytes(range(KEY_BYTES))
PLAIN, CONTEXT = b'{"password":"hunter2"}', b'["credential","default","default","db","postgres"]'
LOCKED = bytes.fromhex(
    "010707070707070707070707077448d63d1c7ca09bb4f931baa2"
    "3981f5d539ff41aa8a5d23c2b136b3357302ef1d680e8622ac"
)
"""PLAIN as the first build locked it: what is in databases must open for ever."""


@pytest.fixture
def vault() -> AesVault:
    return AesVault(KEY, random_bytes)


@pytest.mark.parametrize("plain", [b"", b"x", PLAIN, bytes(range(256)) * 1000])
def test_what_was_locked_is_unlocked(vault: AesVault, plain: bytes) -> None:
    assert vault.unlock(vault.lock(plain, CONTEXT), CONTEXT) == plain


def test_what_an_earlier_build_locked_is_unlocked(vault: AesVault) -> None:
    assert vault.unlock(LOCKED, CONTEXT) == PLAIN
    assert AesVault(KEY, lambda count: b"\x07" * count).lock(PLAIN, CONTEXT) == LOCKED


def test_the_locked_bytes_show_nothing_and_never_repeat(vault: AesVault) -> None:
    locked = [vault.lock(PLAIN, CONTEXT) for _ in range(100)]

    assert len(set(locked)) == 100
    assert not any(b"hunter2" in each or KEY in each for each in locked)


@pytest.mark.parametrize("context", [b"", CONTEXT + b" ", CONTEXT.replace(b"db", b"bd")])
def test_another_context_does_not_open(vault: AesVault, context: bytes) -> None:
    assert vault.unlock(vault.lock(PLAIN, CONTEXT), context) is None


def test_another_key_does_not_open(vault: AesVault) -> None:
    other = AesVault(KEY[::-1], random_bytes)

    assert other.unlock(vault.lock(PLAIN, CONTEXT), CONTEXT) is None


def test_every_changed_bit_is_noticed(vault: AesVault) -> None:
    for place in range(len(LOCKED)):
        for bit in range(8):
            changed = bytearray(LOCKED)
            changed[place] ^= 1 << bit
            assert vault.unlock(bytes(changed), CONTEXT) is None


def test_every_shortened_text_is_noticed(vault: AesVault) -> None:
    assert [vault.unlock(LOCKED[:end], CONTEXT) for end in range(len(LOCKED))] == [None] * len(
        LOCKED
    )


def test_the_key_has_a_name_that_is_its_own_and_does_not_show_it() -> None:
    first, again, other = (AesVault(key, random_bytes).key_id for key in (KEY, KEY, KEY[::-1]))

    assert first == again == "46d58bacad55906d"
    assert other != first
    assert first not in KEY.hex()


@pytest.mark.parametrize("length", [0, 16, 24, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(SettingInvalid, match=f"{length} bytes; use 32"):
        AesVault(b"k" * length, random_bytes)

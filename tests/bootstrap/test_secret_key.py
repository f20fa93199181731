"""The key is found or made once, and never left where others can read it."""

import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noetl.bootstrap.secret_key import FILE_NAME, load_key
from noetl.kernel.errors import SettingInvalid

KEY = bytes(range(224, 256))  # in base64 it has the two letters that differ by alphabet
TEXT = base64.b64encode(KEY).decode()


def test_a_home_without_a_key_gets_one_that_stays(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"

    first = load_key(home, None)

    assert len(first) == 32
    assert load_key(home, None) == first
    assert load_key(tmp_path / "other", None) != first


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_key_that_is_made_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        load_key(tmp_path, None)
    finally:
        os.umask(before)

    assert os.listdir(tmp_path) == [FILE_NAME]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_many_who_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    for race in range(10):
        with ThreadPoolExecutor(max_workers=16) as threads:
            home = tmp_path / str(race)
            keys = set(threads.map(lambda _, home=home: load_key(home, None), range(16)))

        assert keys == {load_key(home, None)}
        assert os.listdir(home) == [FILE_NAME]


@pytest.mark.parametrize(
    "text",
    [TEXT, f" {TEXT}\n", TEXT.rstrip("="), base64.urlsafe_b64encode(KEY).decode()],
    ids=["plain", "with white space", "without padding", "for addresses"],
)
def test_a_given_key_is_used_and_no_file_is_made(tmp_path: Path, text: str) -> None:
    assert load_key(tmp_path / "home", text) == KEY
    assert os.listdir(tmp_path) == []


def test_a_given_key_goes_before_the_one_of_the_home(tmp_path: Path) -> None:
    own = load_key(tmp_path, None)

    assert load_key(tmp_path, TEXT) == KEY
    assert load_key(tmp_path, None) == own


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_given_key_of_the_wrong_length_is_refused(tmp_path: Path, length: int) -> None:
    text = base64.b64encode(KEY[:1] * length).decode()

    with pytest.raises(SettingInvalid, match=f"NOETL_SECRET_KEY has {length} bytes") as raised:
        load_key(tmp_path, text)

    assert "openssl rand -base64 32" in str(raised.value)


@pytest.mark.parametrize("text", ["correct horse battery staple", "a" * 41, "ключ", "\udc00"])
def test_a_given_key_that_is_no_base64_is_refused_and_not_repeated(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(SettingInvalid, match="NOETL_SECRET_KEY is not base64") as raised:
        load_key(tmp_path, text)

    assert text not in str(raised.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o644])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    load_key(tmp_path, None)
    path = tmp_path / FILE_NAME
    path.chmod(mode)

    with pytest.raises(SettingInvalid, match=f"chmod 600 {path}"):
        load_key(tmp_path, None)


def test_a_key_that_only_its_owner_can_read_is_fine(tmp_path: Path) -> None:
    key = load_key(tmp_path, None)
    (tmp_path / FILE_NAME).chmod(0o400)

    assert load_key(tmp_path, None) == key


@pytest.mark.parametrize("content", [b"", b"not base64!", TEXT[:20].encode(), b"A" * 5000])
def test_a_damaged_key_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(SettingInvalid, match=FILE_NAME):
        load_key(tmp_path, None)

    assert path.read_bytes() == content


def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "home" / FILE_NAME).mkdir(parents=True)

    for home in (tmp_path / "file", tmp_path / "home"):
        with pytest.raises(SettingInvalid, match="set NOETL_SECRET_KEY"):
            load_key(home, None)

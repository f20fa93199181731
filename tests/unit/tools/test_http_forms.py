"""The quick ways through an address and a body give what the thorough ones give."""

import json

import pytest

from noetl.kernel.canonical_json import check_plain
from noetl.tools.http_request import _address, _taken_apart
from noetl.tools.http_response import BRACKETS_CHECKED_MAX, parsed

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("params", [[], [("page", "1"), ("q", "a b&c/ü")]])
@pytest.mark.parametrize(
    "written",
    [
        *("http://127.0.0.1:18764/patients/7/assessments", "https://api.example.com", "http://a/"),
        *("http://a:80/x%20y/z", "https://a.b-c/d:e@f", "http://a/x?y=1", "http://a/x;y#z"),
        *(
            "http://a:59999/x",
            "http://a:65535/x",
            "http://u:p@a/x",
            "HTTP://A/x",
            "http://a//b/../c",
        ),
    ],
)
def test_an_address_is_the_same_whether_it_is_taken_apart_or_not(
    written: str, params: list[tuple[str, str]]
) -> None:
    assert _address(written, list(params)) == _taken_apart(written, list(params))


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b"-0",
        b"[1e3, 0.1, -0.0, 5e-324, 123456789012345678]",
        b'"\\ud83d\\ude00"',
        b'"\xc3\xa9"',
        b"\xef\xbb\xbf{}",
        '"é"'.encode("utf-16"),
        b"[" * 90 + b"]" * 90,
    ],
)
def test_a_body_reads_as_json_has_it(body: bytes) -> None:
    assert repr(parsed(body, JSON, "auto")[0]) == repr(json.loads(body))


@pytest.mark.parametrize("body", [b"NaN", b"[1,]", b'"\\ud800"', b"01", b'"\x01"', b"{1: 2}"])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parsed(body, JSON, "json")


@pytest.mark.parametrize(
    ("body", "is_checked"),
    [
        (b'{"a": [1, "\xc3\xa9", 1.5, null, true, "\\ud83d\\ude00"]}', True),
        (b"[" * BRACKETS_CHECKED_MAX + b"]" * BRACKETS_CHECKED_MAX, True),
        (b"[" * (BRACKETS_CHECKED_MAX + 1) + b"]" * (BRACKETS_CHECKED_MAX + 1), False),
        (b"[1e999]", False),
        (b"[12345678901234567890123]", False),
        ('"é"'.encode("utf-16"), False),
    ],
)
def test_only_what_is_known_to_be_plain_is_said_to_be(body: bytes, is_checked: bool) -> None:
    told = parsed(body, JSON, "auto")
    assert told.is_checked is is_checked
    if is_checked:
        check_plain({"value": {"data": told.data}})
        assert parsed(body, {"content-type": "text/plain"}, "auto").is_checked is False

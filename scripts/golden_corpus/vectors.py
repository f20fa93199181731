"""Values with their bytes and digests, for whoever writes the same thing in another language."""

import json
from typing import Any

from noetl.kernel import canonical_json, snowflake
from noetl.kernel.errors import NoETLError
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import Upcaster, UpcasterRegistry

# As JSON text, because a parsed value has lost what matters: the order of keys, 1.0 or 1, -0.0.
CANONICAL_INPUTS = [
    "null",
    "[true, false]",
    '{"b": 1, "a": 2, "": 3, "B": 4, "aa": 5, "á": 6, "10": 7, "9": 8}',
    '{"\U0001f680": "after", "\ufffd": "before: by code point, not by UTF-16 unit"}',
    "[0, -1, 9007199254740993, 9223372036854775807, -9223372036854775808, 18446744073709551615]",
    "[0.0, -0.0, 1.0, 100.0, 0.1, 0.30000000000000004, 1.5, 1e2, 123456789.125]",
    "[1e15, 1e16, 1e17, 1e21, 1e22, 1.5e300, 1.7976931348623157e308]",
    "[0.001, 0.0001, 0.00001, 1e-6, 1e-7, 2.2250738585072014e-308, 5e-324]",
    r'"\u0000\u0001\b\t\n\u000b\f\r\u001f \" \\ \/ / \u007f \u0080"',
    r'"caf\u00e9 cafe\u0301 \u6771\u4eac \ud83d\ude80 \u2028 \u2029 \ufeff <b>&amp;</b>"',
    ' { "list" : [ ] , "object" : { } , "nested" : [ [ { "z" : [ null ] } ] ] } ',
]
REFUSED_INPUTS = ["[NaN]", "[Infinity]", '{"low": -Infinity}', r'"\ud800"', r'{"\udfff": 1}']

COMPOSED = [
    snowflake.Parts(snowflake.EPOCH_MILLIS, 0, 0),
    snowflake.Parts(snowflake.EPOCH_MILLIS, 1, 0),
    snowflake.Parts(snowflake.EPOCH_MILLIS, 0, 1),
    snowflake.Parts(snowflake.EPOCH_MILLIS + 1, 0, 0),
    snowflake.Parts(1_767_225_600_123, 7, 42),
    snowflake.Parts(1_767_225_600_123, 1023, 4095),
    snowflake.Parts(snowflake.EPOCH_MILLIS + 2**41 - 1, 1023, 4095),
]
# (what the clock says, how many ids are taken then): it rises, stands still past the 4,096 ids
# of a millisecond, and steps back.
CLOCK = [(1_767_225_600_000, 3), (1_767_225_600_001, 4_100), (1_767_225_599_000, 2)]

_ORDER_1, _ORDER_2 = ("noetl.order", 1), ("noetl.order", 2)
REGISTRIES = {
    "empty": [],
    "one step": [_ORDER_1],
    "two steps": [_ORDER_1, _ORDER_2],
    "two steps in another order": [_ORDER_2, _ORDER_1],
    "two schemas": [("noetl.order", 1), ("acme.invoice", 12), ("acme.invoice", 2)],
}


def canonical_json_vectors() -> dict[str, Any]:
    return {
        "form": canonical_json.FORM,
        "values": [_canonical(text) for text in CANONICAL_INPUTS],
        "refused": [{"input": text, "code": _refusal(text)} for text in REFUSED_INPUTS],
    }


def _canonical(text: str) -> dict[str, str]:
    encoded = canonical_json.encode(json.loads(text))
    return {
        "input": text,
        "canonical": encoded.decode(),
        "sha256": canonical_json.sha256_hex(encoded),
    }


def _refusal(text: str) -> str:
    try:
        encoded = canonical_json.encode(json.loads(text))
    except NoETLError as error:
        return error.code
    raise AssertionError(f"{text} was written as {encoded.decode()}")


def snowflake_vectors() -> dict[str, Any]:
    return {
        "epoch_millis": snowflake.EPOCH_MILLIS,
        "bits": {"millis": 41, "node": 10, "sequence": 12},
        "composed": [
            {**parts._asdict(), "id": (made := snowflake.compose(parts))}
            | {"minted_at": snowflake.minted_at(made)}
            for parts in COMPOSED
        ],
        "taken_in_turn": {"node": 5, "readings": _taken(snowflake.SnowflakeSequence(5))},
    }


def _taken(ids: snowflake.SnowflakeSequence) -> list[dict[str, Any]]:
    readings = []
    for now_millis, count in CLOCK:
        taken = [ids.next(now_millis) for _ in range(count)]
        readings.append(
            {"now_millis": now_millis, "count": count, "first": taken[0], "last": taken[-1]}
        )
    return readings


def upcaster_registry_vectors() -> dict[str, Any]:
    return {
        "released": RELEASED.digest,
        "registries": [
            {"name": name, "transitions": steps, "digest": _registry(steps).digest}
            for name, steps in REGISTRIES.items()
        ],
    }


def _registry(steps: list[tuple[str, int]]) -> UpcasterRegistry:
    return UpcasterRegistry(
        Upcaster(name, version, version + 1, lambda body: body) for name, version in steps
    )

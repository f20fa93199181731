"""The error tree is drawn whole, and every error in it can be told from all others."""

import re
from collections.abc import Iterator

import pytest

from noetl.kernel import errors
from noetl.kernel.errors import NoETLError, PayloadCorrupt, PayloadMissing, RequestInvalid
from noetl.kernel.errors.advice import advised

_LINE = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>[A-Za-z]+)(?: +(?P<meaning>\S.*))?$")
_INDENT = 4

GROUPS = {
    "SparkError",
    "NoETLError",
    "LogError",
    "ReplayError",
    "PayloadError",
    "ObjectError",
    "CredentialError",
}


def classes() -> Iterator[type[NoETLError]]:
    waiting = [NoETLError]
    while waiting:
        found = waiting.pop()
        if found.__module__.startswith(errors.__name__):
            yield found
            waiting += found.__subclasses__()


def drawn() -> dict[str, tuple[str | None, str]]:
    """name -> (parent, meaning), as the picture at the top of the module shows it."""
    tree: dict[str, tuple[str | None, str]] = {}
    path: list[str] = []
    picture = (errors.__doc__ or "").split("\n\n", 1)[1]
    for line in picture.strip().splitlines():
        found = _LINE.match(line)
        assert found, line
        depth = len(found["branch"]) // _INDENT
        path[depth:] = [found["name"]]
        assert found["name"] not in tree, f"{found['name']} is drawn twice"
        tree[found["name"]] = (path[depth - 1] if depth else None, found["meaning"] or "")
    return tree


def test_the_picture_shows_every_error_once_under_its_parent() -> None:
    parents = {cls.__name__: cls.__base__.__name__ for cls in classes() if cls.__base__}
    parents["NoETLError"] = ""
    assert {name: parent or "" for name, (parent, _) in drawn().items()} == parents


def test_the_picture_says_what_every_error_means() -> None:
    silent = {name for name, (_, meaning) in drawn().items() if not meaning}
    assert silent == GROUPS


def test_codes_are_unique_and_each_class_has_its_own() -> None:
    codes = [cls.__dict__.get("code") for cls in classes()]
    assert None not in codes
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("cls", list(classes()), ids=lambda cls: cls.__name__)
def test_a_code_is_the_name_in_snake_case(cls: type[NoETLError]) -> None:
    words = re.findall(r"[A-Z][a-z]+", cls.__name__.replace("NoETLError", "Noetl"))
    expected = "_".join(word.lower() for word in words)
    assert cls.code in (expected, expected.removesuffix("_error"))


def test_only_what_may_pass_by_itself_is_worth_a_retry() -> None:
    retryable = {cls.__name__ for cls in classes() if cls.retryable}
    stores = {"HomeInUse", "LogUnavailable", "StoreUnavailable", "VersionConflict"}
    spark = {"SparkStartFailed", "SparkDriverLost", "SparkJobFailed"}
    assert retryable == stores | spark | {"CollectionRefused"}


@pytest.mark.parametrize(
    ("error", "facts", "advice"),
    [
        (errors.ScopeMissing("tenant_id"), {"field": "tenant_id"}, "needs a tenant"),
        (errors.NotFinite("$.a", float("inf")), {"path": "$.a"}, "use null"),
        (
            errors.EventTooLarge("step.exit", size_bytes=9, size_bytes_max=8),
            {"size_bytes": 9, "size_bytes_max": 8},
            "store the data as a payload",
        ),
        (
            errors.VersionConflict("execution/1", expected=2, actual=3),
            {"stream": "execution/1", "expected": 2, "actual": 3},
            "is at version 3, not 2; reload and try again",
        ),
        (errors.KeyReused("execution/1", "k"), {"key": "k"}, "choose a new key"),
        (errors.DuplicateFact("execution/1", "f"), {"fact": "f"}, "the work was done"),
        (
            errors.EventCorrupt("1@2", recorded="aa", actual="bb"),
            {"event": "1@2", "recorded": "aa", "actual": "bb"},
            "restore the log",
        ),
        (errors.LogReplaced("projector", known="a", actual="b"), {"consumer": "projector"},
            "rebuild the read models"),
        (errors.ExecutionNotFound("7"), {"execution": "7"}, "no execution 7"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, NoETLError) else "",
)  # fmt: skip
def test_an_error_carries_its_facts_and_says_what_to_do(
    error: NoETLError, facts: dict[str, object], advice: str
) -> None:
    assert {name: getattr(error, name) for name in facts} == facts
    assert advice in str(error)


def test_lost_bytes_come_with_advice_where_it_reaches_somebody() -> None:
    uri = "noetl://default/default/results/123/load/0/0/1@1"
    command = "noetl results verify 123 --repair"
    assert command in advised(PayloadMissing(uri))
    assert command in advised(PayloadCorrupt(uri, expected="00", actual="11"))
    assert "verify ID --repair" in advised(PayloadMissing("noetl://default/default/payloads/00"))
    assert command not in str(PayloadMissing(uri))
    assert advised(RequestInvalid("no")) == "no"

"""Errors of stores as failures that rules can speak of."""

import pytest

from noetl.kernel.errors import (
    NoETLError,
    ObjectDiffers,
    ObjectError,
    ObjectKeyInvalid,
    ObjectMissing,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.kernel.errors.advice import advised
from noetl.pipeline.failures import failure_of


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (ObjectMissing("s3://b/k"), "missing_reference", True),
        (ObjectDiffers("s3://b/k", stored="a", given="b"), "storage_access", False),
        (ObjectKeyInvalid("a b"), "storage_access", False),
        (ObjectError("the object is odd"), "storage_access", False),
        (PayloadMissing("noetl://x"), "missing_reference", True),
        (StoreUnavailable("no answer"), "storage_access", True),
    ],
)
def test_trouble_with_objects_has_a_kind_and_a_code(
    error: NoETLError, kind: str, retryable: bool
) -> None:
    failure = failure_of(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert (failure.code, failure.message) == (error.code, advised(error))

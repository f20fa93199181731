"""How payloads are named, whatever tenants are called."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.domain.payload import (
    Fingerprint,
    PayloadReference,
    StoredPayload,
    is_payload_uri,
    payload_key,
    payload_prefix,
    payload_uri,
    reference_to,
)
from noetl.kernel.errors import PayloadCorrupt, PayloadMissing, ScopeMissing
from noetl.kernel.scope import Scope

DIGEST = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"  # of b"hello world"
SCOPE = Scope("acme", "research")

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
scopes = st.builds(Scope, names, names)


def test_a_key_has_tenant_organization_two_folders_and_the_digest() -> None:
    assert payload_key(SCOPE, DIGEST) == f"acme/research/b9/4d/{DIGEST}"


def test_a_uri_names_no_store() -> None:
    assert payload_uri(SCOPE, DIGEST) == f"noetl://tenant/acme/org/research/payload/{DIGEST}"


@given(scopes)
def test_a_scope_is_exactly_two_parts_of_a_path(scope: Scope) -> None:
    tenant, organization, nothing = payload_prefix(scope).split("/")

    assert nothing == ""
    for part in (tenant, organization):
        assert part.isascii()
        assert part.isprintable()
        assert "." not in part


@given(scopes, scopes)
def test_two_scopes_never_share_a_name(one: Scope, other: Scope) -> None:
    assert (payload_prefix(one) == payload_prefix(other)) == (one == other)
    assert (payload_uri(one, DIGEST) == payload_uri(other, DIGEST)) == (one == other)
    assert is_payload_uri(payload_uri(one, DIGEST))


@pytest.mark.parametrize(
    ("scope", "field"), [(Scope("", "x"), "tenant_id"), (Scope("x", ""), "organization_id")]
)
def test_a_scope_without_a_name_has_no_key(scope: Scope, field: str) -> None:
    with pytest.raises(ScopeMissing, match=field):
        payload_key(scope, DIGEST)


@pytest.mark.parametrize("digest", ["", "..", "/etc/passwd", DIGEST.upper(), DIGEST + "\n"])
def test_what_is_no_digest_has_no_key(digest: str) -> None:
    with pytest.raises(PayloadMissing):
        payload_key(SCOPE, digest)


@pytest.mark.parametrize(
    "uri", ["", "noetl://acme/research/results/1/load/0/0/1@1", "noetl://tenant/a/org/b/payload/"]
)
def test_other_uris_are_told_apart(uri: str) -> None:
    assert not is_payload_uri(uri)


def test_pieces_have_the_fingerprint_of_the_whole() -> None:
    fingerprint = Fingerprint(b"hello")
    fingerprint.add(b" ")
    fingerprint.add(b"world")

    assert fingerprint.stored() == StoredPayload(DIGEST, 11)


def test_other_bytes_are_refused_with_both_digests() -> None:
    reference = reference_to(SCOPE, StoredPayload(DIGEST, 11), "text/plain")

    Fingerprint(b"hello world").check(reference.uri, reference.sha256)
    with pytest.raises(PayloadCorrupt) as raised:
        Fingerprint(b"hello w0rld").check(reference.uri, reference.sha256)

    assert raised.value.expected == DIGEST
    assert raised.value.actual == Fingerprint(b"hello w0rld").stored().sha256


def test_a_reference_at_rest_says_what_kind_it_is() -> None:
    reference = reference_to(SCOPE, StoredPayload(DIGEST, 11), "text/plain")

    at_rest = msgspec.to_builtins(reference)

    assert at_rest == {
        "kind": "payload_store",
        "tenant_id": "acme",
        "organization_id": "research",
        "uri": f"noetl://tenant/acme/org/research/payload/{DIGEST}",
        "sha256": DIGEST,
        "media_type": "text/plain",
        "byte_length": 11,
    }
    assert msgspec.convert(at_rest, PayloadReference) == reference

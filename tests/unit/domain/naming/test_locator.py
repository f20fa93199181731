"""Every `noetl://` name is read in one way, and what is none is refused with advice."""

import pytest

from noetl.domain.naming.locator import (
    KNOWN_RESOURCE_KINDS,
    LegacyResultName,
    Locality,
    LogicalName,
    ResourceLocator,
    WorkerLocatorParts,
    dataset_locator,
    parse,
    parse_logical,
    parse_resource,
    partition_locator,
    resource_locator,
    stream_locator,
    worker_locator,
)
from noetl.domain.naming.subjects import from_nats_subject, jetstream_domain, to_nats_subject
from noetl.domain.payload import payload_uri
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope

SCOPE = Scope("acme", "research")
WORKER = worker_locator(
    WorkerLocatorParts(
        scope=SCOPE, worker="w-7", region="eu", zone="eu-a", cluster="blue", node="n1"
    )
)


def test_a_resource_is_pairs_from_coarse_to_fine() -> None:
    assert WORKER.uri == (
        "noetl://tenant/acme/org/research/region/eu/zone/eu-a/cluster/blue/node/n1/worker/w-7"
    )
    assert (WORKER.kind, WORKER.identifier) == ("worker", "w-7")
    assert (WORKER.tenant, WORKER.organization) == SCOPE
    assert WORKER.is_known
    assert parse(WORKER.uri) == WORKER


def test_a_worker_says_only_what_it_knows_of_its_place() -> None:
    named = worker_locator(WorkerLocatorParts(scope=SCOPE, worker="w", cluster="blue"))
    assert named.uri == "noetl://tenant/acme/org/research/cluster/blue/worker/w"
    assert named.locality() == Locality(cluster="blue")


def test_places_in_the_older_order_say_the_same() -> None:
    older = parse_resource("noetl://tenant/a/org/b/cluster/c/region/r/zone/z/node/n/worker/w")
    assert older.locality() == Locality("r", "z", "c", "n")


def test_builders_name_datasets_streams_and_partitions() -> None:
    assert dataset_locator(SCOPE, "d").uri == "noetl://tenant/acme/org/research/dataset/d"
    assert stream_locator(SCOPE, "s").uri == "noetl://tenant/acme/org/research/stream/s"
    assert (
        partition_locator(SCOPE, "s", "3").uri
        == "noetl://tenant/acme/org/research/stream/s/partition/3"
    )


@pytest.mark.parametrize("kind", sorted(KNOWN_RESOURCE_KINDS - {"tenant", "org"}))
def test_every_known_kind_can_be_named(kind: str) -> None:
    named = resource_locator(SCOPE, kind, "1")
    assert parse(named.uri) == named
    assert named.is_known


def test_a_builder_makes_no_kind_that_nobody_knows_but_reading_does() -> None:
    with pytest.raises(NameInvalid, match="use one of cache, "):
        resource_locator(SCOPE, "spaceship", "1")
    assert not parse_resource("noetl://tenant/a/spaceship/1").is_known


def test_payloads_are_resources() -> None:
    payload = parse_resource(payload_uri(Scope("a/b", ".."), "c0ffee"))
    assert payload.pairs == (("tenant", "a/b"), ("org", ".."), ("payload", "c0ffee"))


def test_a_logical_name_has_a_path_and_a_version() -> None:
    name = parse("noetl://acme/research/playbooks/billing/daily@3")
    assert name == LogicalName("acme", "research", "playbooks", ("billing", "daily"), "3")
    assert parse("noetl://acme/research/playbooks/daily") == LogicalName(
        "acme", "research", "playbooks", ("daily",)
    )


def test_an_older_reference_stays_readable() -> None:
    uri = "noetl://execution/478/result/load%2Frows/abc"
    assert parse(uri) == LegacyResultName(ExecutionId("478"), "load/rows", "abc")
    assert parse(uri).uri == uri


@pytest.mark.parametrize(
    ("tenant", "uri"),
    [
        ("tenant", "noetl://%74enant/org/kind/x@1"),
        ("execution", "noetl://%65xecution/org/kind/x@1"),
        ("tenants", "noetl://tenants/org/kind/x@1"),
        ("%74enant", "noetl://%2574enant/org/kind/x@1"),
    ],
)
def test_a_tenant_may_be_called_like_the_word_that_begins_another_shape(
    tenant: str, uri: str
) -> None:
    name = LogicalName(tenant, "org", "kind", ("x",), "1")
    assert name.uri == uri
    assert parse(uri) == name


def test_a_resource_of_a_tenant_called_tenant_is_still_a_resource() -> None:
    assert parse("noetl://tenant/tenant/org/org/worker/tenant") == ResourceLocator(
        (("tenant", "tenant"), ("org", "org"), ("worker", "tenant"))
    )


@pytest.mark.parametrize(
    ("uri", "advice"),
    [
        ("", "begin with noetl://"),
        ("http://acme/research/results/x@1", "begin with noetl://"),
        ("NOETL://acme/research/results/x@1", "begin with noetl://"),
        ("noetl://", "too short"),
        ("noetl://coordinator", "too short"),
        ("noetl://acme/research/results", "too short"),
        ("noetl://acme/research/results/x?v=1", "query or a fragment"),
        ("noetl://acme/research/results/x#1", "query or a fragment"),
        ("noetl://tenant/acme/org", "without a name"),
        ("noetl://tenant", "without a name"),
        ("noetl://tenant//org/x", "percent-encode"),
        ("noetl://tenant/a/tenant/b", "twice"),
        ("noetl://tenant/a/Org/b", "small letters"),
        ("noetl://tenant/a/org/..", "percent-encode"),
        ("noetl://acme/./results/x@1", "percent-encode"),
        ("noetl://acme/research/results/../up@1", "percent-encode"),
        ("noetl://acme/research//x@1", "percent-encode"),
        ("noetl://acme/research/results/x@", "percent-encode"),
        ("noetl://acme/research/results/@1", "percent-encode"),
        ("noetl://acme/research/results/x%zz@1", "percent-encode"),
        ("noetl://acme/research/results/x%", "percent-encode"),
        ("noetl://acme/research/results/a b@1", "percent-encode"),
        ("noetl://acme/research/results/a\u202eb@1", "percent-encode"),
        ("noetl://acme/research/results/x%ff@1", "UTF-8"),
        ("noetl://execution/1/results/x", "written %65xecution"),
        ("noetl://execution/1/result/x", "written %65xecution"),
    ],
)
def test_what_is_no_name_is_refused_with_advice(uri: str, advice: str) -> None:
    with pytest.raises(NameInvalid, match=advice):
        parse(uri)


def test_one_shape_is_not_taken_for_the_other() -> None:
    with pytest.raises(NameInvalid, match="names no resource"):
        parse_resource("noetl://acme/research/results/x@1")
    with pytest.raises(NameInvalid, match="no logical name"):
        parse_logical("noetl://tenant/a/org/b")


@pytest.mark.parametrize("pairs", [(), (("org", "a"),), (("tenant", ""),), (("tenant", "\ud800"),)])
def test_a_resource_that_could_not_be_written_is_not_made(
    pairs: tuple[tuple[str, str], ...],
) -> None:
    with pytest.raises(NameInvalid):
        ResourceLocator(pairs)


def test_a_logical_name_without_a_path_is_not_made() -> None:
    with pytest.raises(NameInvalid, match="needs a path"):
        LogicalName("a", "b", "c", ())
    with pytest.raises(NameInvalid, match="version is empty"):
        LogicalName("a", "b", "c", ("d",), "")


def test_a_part_may_be_less_escaped_than_we_write_it() -> None:
    assert parse("noetl://acme/research/tables/a.b:c/ü@1").uri == (
        "noetl://acme/research/tables/a%2Eb%3Ac/%C3%BC@1"
    )
    assert parse("noetl://acme/research/users/ann@home@2").uri == (
        "noetl://acme/research/users/ann%40home@2"
    )


def test_a_subject_has_one_token_for_each_part() -> None:
    assert to_nats_subject(WORKER) == (
        "noetl.names.tenant.acme.org.research.region.eu.zone.eu-a.cluster.blue.node.n1.worker.w-7"
    )
    assert to_nats_subject(dataset_locator(Scope("a.b", "*"), ">")) == (
        "noetl.names.tenant.a%2Eb.org.%2A.dataset.%3E"
    )


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "noetl.events.tenant.a",
        "noetl.names.tenant.a.org.>",
        "noetl.names.tenant.*",
        "noetl.names.tenant.a/b/c",
        "noetl.names.a.b.c.%64",
    ],
)
def test_a_subject_that_no_name_has_is_refused(subject: str) -> None:
    with pytest.raises(NameInvalid):
        from_nats_subject(subject)


def domain(*pairs: tuple[str, str]) -> str:
    return jetstream_domain(ResourceLocator(pairs))


def test_the_domain_of_a_place_can_be_read() -> None:
    parts = WorkerLocatorParts(
        scope=Scope("default", "default"),
        worker="w",
        region="us-east-1",
        zone="us-east-1a",
        cluster="a",
    )
    assert jetstream_domain(worker_locator(parts)) == (
        "tenant_default_org_default_region_us_east_1_cluster_a"
    )


def test_places_that_would_read_the_same_have_domains_of_their_own() -> None:
    domains = [
        domain(("tenant", "a"), ("org", "b"), ("region", "us-east-1")),
        domain(("tenant", "a"), ("org", "b"), ("region", "us_east_1")),
        domain(("tenant", "a"), ("org", "b"), ("region", "us.east.1")),
        domain(("tenant", "a-org-b"), ("org", "c")),
        domain(("tenant", "a"), ("org", "b-org-c")),
        domain(("tenant", "a"), ("org", "b")),
    ]
    assert len(set(domains)) == len(domains)
    for each in domains:
        assert each.replace("_", "").isalnum()
        assert each.isascii()

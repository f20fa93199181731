"""Laws of names: every name has one text, and every text that is one has one name."""

from hypothesis import given
from hypothesis import strategies as st

from noetl.domain.naming.locator import (
    KNOWN_RESOURCE_KINDS,
    LegacyResultName,
    LogicalName,
    Name,
    ResourceLocator,
    parse,
)
from noetl.domain.naming.placement import (
    CellPlacement,
    dataset_key,
    execution_prefix,
    parse_physical_key,
    physical_key,
)
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.domain.naming.segment import escape, unescape
from noetl.domain.naming.subjects import from_nats_subject, jetstream_domain, to_nats_subject
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId

# Words that mean something in names come up often, so that names which look alike meet.
TRICKY = st.sampled_from(
    ["tenant", "execution", "org", "result", "results", ".", "..", "a:b", "a#2", "a%3Ab", "@1", "*"]
)
TEXTS = TRICKY | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
COUNTS = st.integers(1, 10**19 - 1)
ORDINALS = st.integers(0, 10**19 - 1)
SNOWFLAKES = st.integers(0, 2**63 - 1).map(lambda number: ExecutionId(str(number)))
PLACES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,6}\Z")
PLACEMENTS = st.builds(CellPlacement, PLACES, PLACES, PLACES, st.integers(1, 10_000))
EXTENSIONS = st.sampled_from(["json", "feather", "v2", "7"])

RESOURCES = st.builds(
    lambda tenant, others: ResourceLocator((("tenant", tenant), *others)),
    TEXTS,
    st.lists(
        st.tuples(st.sampled_from(sorted(KNOWN_RESOURCE_KINDS - {"tenant"})), TEXTS),
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
)
LOGICAL = st.builds(
    LogicalName,
    TEXTS,
    TEXTS,
    TEXTS,
    st.lists(TEXTS, min_size=1, max_size=5).map(tuple),
    st.none() | TEXTS,
)
LEGACY = st.builds(LegacyResultName, TEXTS, TEXTS, TEXTS)
NAMES: st.SearchStrategy[Name] = RESOURCES | LOGICAL | LEGACY

RESULTS = st.tuples(st.none() | TEXTS, COUNTS).flatmap(
    lambda ran: st.builds(
        ResultName,
        tenant=TEXTS,
        project=TEXTS,
        execution_id=SNOWFLAKES,
        step=TEXTS,
        task=st.just(ran[0]),
        run=st.just(1 if ran[0] is None else ran[1]),
        frame=ORDINALS,
        row=ORDINALS,
        attempt=COUNTS,
        visit=COUNTS,
    )
)
DATASETS = st.builds(
    DatasetName, tenant=TEXTS, project=TEXTS, execution_id=SNOWFLAKES, step=TEXTS, visit=COUNTS
)


@given(TEXTS)
def test_a_part_is_plain_and_gives_its_name_back(name: str) -> None:
    part = escape(name)
    assert unescape(part) == name
    assert part.isascii()
    assert part.replace("%", "").replace("-", "").replace("_", "").replace("~", "").isalnum() or (
        set(part) <= set("-_~")
    )


@given(NAMES)
def test_a_name_is_read_as_it_was_written(name: Name) -> None:
    assert parse(name.uri) == name


@given(NAMES, NAMES)
def test_two_names_never_share_a_text(one: Name, other: Name) -> None:
    assert (one.uri == other.uri) == (one == other)


@given(NAMES)
def test_a_subject_gives_its_name_back(name: Name) -> None:
    subject = to_nats_subject(name)
    assert from_nats_subject(subject) == name
    assert all(subject.split("."))
    assert not set(subject) & set("*> \t\r\n")


@given(st.text() | NAMES.map(lambda name: name.uri).map(lambda uri: uri[:-1]))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = parse(text)
    except NameInvalid:
        return
    assert parse(name.uri) == name


@given(st.text(alphabet="noetl.names.tenant.a.%264~*>@/ ") | NAMES.map(to_nats_subject))
def test_a_subject_that_is_read_is_written_the_same(subject: str) -> None:
    try:
        name = from_nats_subject(subject)
    except NameInvalid:
        return
    assert to_nats_subject(name) == subject


@given(RESULTS | DATASETS)
def test_results_are_read_as_they_were_written(name: ResultName | DatasetName) -> None:
    assert parse_results(name.uri) == name
    assert from_nats_subject(to_nats_subject(parse(name.uri))).uri == name.uri


@given(RESULTS, PLACEMENTS, EXTENSIONS)
def test_a_key_gives_the_coordinates_back(
    name: ResultName, placement: CellPlacement, extension: str
) -> None:
    key = physical_key(name, placement, extension)
    found = parse_physical_key(key)
    assert found is not None
    assert (found.name, found.extension) == (name, extension)
    assert (found.env, found.region, found.cell) == placement_of(placement)
    assert key.startswith(execution_prefix(name.scope, name.execution_id, placement))
    assert not {"", ".", ".."} & set(key.split("/"))


@given(DATASETS, PLACEMENTS)
def test_a_manifest_gives_its_dataset_back(name: DatasetName, placement: CellPlacement) -> None:
    found = parse_physical_key(dataset_key(name, placement))
    assert found is not None
    assert found.name == name


def placement_of(placement: CellPlacement) -> tuple[str, str, str]:
    return (placement.env, placement.region, placement.cell)


WORDS = st.sampled_from(["a", "b", "a-b", "a_b", "org", "a-org-b", "a.b", "cluster-a", "-a", "a-"])


@given(*[st.tuples(WORDS, WORDS, st.none() | WORDS, st.none() | WORDS)] * 2)
def test_two_places_do_not_share_a_domain(
    one: tuple[str, str, str | None, str | None], other: tuple[str, str, str | None, str | None]
) -> None:
    assert (domain(one) == domain(other)) == (one == other)


def domain(names: tuple[str, str, str | None, str | None]) -> str:
    kinds = ("tenant", "org", "region", "cluster")
    pairs = zip(kinds, names, strict=True)
    return jetstream_domain(
        ResourceLocator(tuple((kind, name) for kind, name in pairs if name is not None))
    )

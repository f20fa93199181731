"""Names as NATS writes them: one subject for each name and back, and domains of JetStream."""

import re

from noetl.domain.naming.fnv import fnv1a64
from noetl.domain.naming.locator import SCHEME, Name, ResourceLocator, parse
from noetl.kernel.errors import NameInvalid

SUBJECT_PREFIX = "noetl.names."
"""Apart from `noetl.events.` and the like: a tenant may be called `events`."""

_DOMAIN_KINDS = ("tenant", "org", "region", "cluster")
_PLAIN = re.compile(r"[A-Za-z0-9-]+")


def to_nats_subject(name: Name) -> str:
    """One token for each part; parts hold no dot, no wildcard and no space of their own."""
    return SUBJECT_PREFIX + name.uri.removeprefix(SCHEME).replace("/", ".")


def from_nats_subject(subject: str) -> Name:
    """The name that has exactly this subject."""
    if subject.startswith(SUBJECT_PREFIX):
        name = parse(SCHEME + subject.removeprefix(SUBJECT_PREFIX).replace(".", "/"))
        if to_nats_subject(name) == subject:
            return name
    raise NameInvalid(repr(subject), f"is not the subject of a name; they begin {SUBJECT_PREFIX}")


def jetstream_domain(locator: ResourceLocator) -> str:
    """The domain that a resource belongs to: `tenant_acme_org_eu_region_us_east_1_cluster_a`.

    Two places do not share one: where the plain form would blur names, a hash goes before it.
    """
    pairs = [(kind, locator.value(kind)) for kind in _DOMAIN_KINDS]
    given = [(kind, name) for kind, name in pairs if name is not None]
    plain = "_".join(f"{kind}_{re.sub('[^A-Za-z0-9]', '_', name)}" for kind, name in given)
    if all(_is_plain(name) for _, name in given):
        return plain
    exact = ResourceLocator(tuple(given)).uri
    return f"h{fnv1a64(exact.encode()):016x}_{plain}"  # plain forms begin with `tenant_`


def _is_plain(name: str) -> bool:
    """Whether the name can be read back from between the kinds that stand around it."""
    words = set(name.split("-"))
    return _PLAIN.fullmatch(name) is not None and words.isdisjoint(_DOMAIN_KINDS)

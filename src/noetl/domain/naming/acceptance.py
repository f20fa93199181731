"""What kind of name a reported result has. Whatever it is, the report counts: this only tells."""

from typing import Literal

from noetl.domain.naming.locator import LegacyResultName, parse
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri
from noetl.kernel.errors import NameInvalid

Acceptance = Literal["canonical", "variant", "payload", "legacy", "malformed"]
ACCEPTANCES: tuple[Acceptance, ...] = ("canonical", "variant", "payload", "legacy", "malformed")
"""As we write it; another spelling of one; a digest; a reference of earlier logs; none at all."""


def how_named(uri: str) -> Acceptance:
    if is_payload_uri(uri):
        return "payload"
    try:
        if isinstance(parse(uri), LegacyResultName):
            return "legacy"
        return "canonical" if parse_results(uri).uri == uri else "variant"
    except NameInvalid:
        return "malformed"

"""What all rows of an interpreter share: tools, stores, and what was made for earlier rows."""

from collections.abc import Callable
from dataclasses import dataclass

from noetl.pipeline.boundary import Tools
from noetl.pipeline.contents import Contents
from noetl.pipeline.credentials import Credentials
from noetl.pipeline.facts_view import FactsViews
from noetl.pipeline.keychain import Keychain
from noetl.pipeline.plan import Plans
from noetl.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    tools: Tools
    credentials: Credentials
    keychain: Keychain
    contents: Contents
    clock: Clock
    entropy: Callable[[], str]
    plans: Plans
    views: FactsViews

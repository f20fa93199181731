"""Where frames' journals lie: beside the payloads of the home, or in the store that all share."""

from pathlib import Path
from typing import NamedTuple

from noetl.adapters.filesystem.frame_journal import FilesystemFrameJournal
from noetl.adapters.system.chance import new_uuid
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.sweeping import Kept, KeptInFolder
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.object_store import ObjectStore
from noetl.results.frame_journal import ObjectFrameJournal


class Journals(NamedTuple):
    journal: FrameJournal
    kept: Kept


def open_journals(settings: Settings, objects: ObjectStore) -> Journals:
    """A payload store outside of the home may outlive it, and the journals go with the payloads.

    In the home a file that is appended to is flushed faster than one file after the other.
    """
    if settings.payload_url == "file:":
        folder = Path(settings.home) / "journals"
        return Journals(FilesystemFrameJournal(folder), KeptInFolder(folder))
    journal = ObjectFrameJournal(objects, settings.placement, new_uuid())
    return Journals(journal, journal)

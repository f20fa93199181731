"""The same program on every profile: only the settings differ."""

from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.settings import Settings
from noetl.domain.events import StepEntered
from noetl.domain.log import EMPTY_STREAM, Append, Appended
from noetl.domain.payload import payload_key
from noetl.kernel.errors import LogUnavailable, SettingInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.runtime.certificate import Certificate, certify
from noetl.runtime.payload_verification import verify_payloads
from noetl.runtime.projector import Projector
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.testing.histories import History, begin, execution_ids, loop_of_frames, source_of
from noetl.wire.codec import seal

(EXECUTION,) = execution_ids(1)


async def use(platform: Platform, settings: Settings) -> Certificate:
    """Payload, events, read models, snapshot, certificate: everything a platform is for."""
    payload = await platform.payloads.put(settings.scope, b"rows", "text/plain")
    history = History(EXECUTION)
    drafts = [
        *begin(history),
        *loop_of_frames(history, StepName("each"), frames=3),
        history.draft(StepEntered(step=StepName("end")), payload_ref=payload),
    ]
    sealed = seal(drafts, EMPTY_STREAM, source_of(EXECUTION))
    (landed,) = await platform.log.append([Append(settings.scope, EXECUTION, 0, sealed)])
    assert isinstance(landed, Appended)
    while await Projector(platform.log, platform.projections, platform.snapshots).advance():
        pass
    request = ReplayRequest(scope=settings.scope, execution_id=ExecutionId(EXECUTION))
    replay = Replay(platform.log, platform.snapshots)
    await platform.snapshots.save(await replay.take_snapshot(request, platform.clock()))
    found = await verify_payloads(replay.events(request), platform.results)
    # The frames of this history were made up: their names are right, and nothing lies there.
    errors = {fact.uri: fact.error for fact in found.facts}
    assert errors.pop(payload.uri) is None
    assert set(errors.values()) == {"payload_missing"}
    record = await platform.projections.load(settings.scope, "execution", EXECUTION)
    assert record is not None
    assert record.state["status"] == "RUNNING"
    return await certify(platform.log, platform.snapshots, request)


@pytest.mark.servers
async def test_the_profiles_prove_the_same_state(
    tmp_path: Path,
    postgres_dsn: str,
    s3_server: SeaweedS3Server,
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    options = urlencode({"endpoint": s3_server.endpoint, "region": s3_server.region})
    embedded = Settings(home=str(tmp_path))
    cluster = Settings(log_url=postgres_dsn, payload_url=f"s3://{s3_bucket}?{options}")

    certificates = []
    for settings in (embedded, cluster):
        async with open_platform(settings) as platform:
            certificates.append(await use(platform, settings))

    assert certificates[0] == certificates[1]
    assert certificates[0].proved
    assert certificates[0].snapshot_version == certificates[0].event_count


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings(log_url="mysql://x"), "use sqlite: or postgresql://"),
        (Settings(payload_url="ftp://x"), "is not an object store"),
        (Settings(payload_url="file://host/folder"), "use file:///folder"),
        (Settings(payload_url="file:folder"), "use file:///folder"),
    ],
)
async def test_a_store_that_we_do_not_know_is_named(settings: Settings, says: str) -> None:
    with pytest.raises(SettingInvalid, match=says):
        async with open_platform(settings):
            pass


async def test_payloads_and_results_share_one_store(tmp_path: Path) -> None:
    volume = tmp_path / "a volume"
    settings = Settings(home=str(tmp_path / "home"), payload_url=f"file://{quote(str(volume))}")

    async with open_platform(settings) as platform:
        reference = await platform.payloads.put(settings.scope, b"payload", "text/plain")
        await platform.objects.create("noetl/results/1.json", b"result")
        keys = [facts.key for facts in await platform.objects.list_objects("")]

    assert keys == [payload_key(settings.scope, reference.sha256), "noetl/results/1.json"]
    assert (volume / "noetl" / "results" / "1.json").read_bytes() == b"result"


async def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    nowhere = Settings(log_url="postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(LogUnavailable) as raised:
        async with open_platform(nowhere):
            pass
    assert raised.value.retryable

"""Settings that other engines have, and what does the same here."""

from typing import Final

_WHERE_RESULTS_LIE: Final = (
    "use NOETL_PAYLOAD_URL: file:///folder, s3://bucket?endpoint=…, gs://bucket or az://container"
)
_ALWAYS: Final = "remove it: it is always so"
_GOOGLE: Final = "use GOOGLE_APPLICATION_CREDENTIALS, or the role of the machine"

INSTEAD: Final = {
    "NOETL_COMMAND_HEARTBEAT_TIMEOUT_SECONDS": "use NOETL_LEASE_SECONDS",
    "NOETL_CLUSTER_ID": "use noetl worker --label cluster=…",
    "NOETL_CURSOR_FRAME_IPC_ENABLED": "use NOETL_RESULT_SHARED_MEMORY_MB, of which 0 means off",
    "NOETL_DEFAULT_STORE_TIER": _WHERE_RESULTS_LIE,
    "NOETL_EVENT_TRANSPORT": "remove it: workers speak HTTP",
    "NOETL_INTERNAL_API_TOKEN": "use NOETL_INTERNAL_KEY",
    "NOETL_MINIO_ACCESS_KEY": "use AWS_ACCESS_KEY_ID",
    "NOETL_MINIO_BUCKET": _WHERE_RESULTS_LIE,
    "NOETL_MINIO_ENDPOINT": _WHERE_RESULTS_LIE,
    "NOETL_MINIO_REGION": _WHERE_RESULTS_LIE,
    "NOETL_MINIO_SECRET_KEY": "use AWS_SECRET_ACCESS_KEY",
    "NOETL_NODE_ID": "use NOETL_NODE_NAME for the machine, NOETL_NODE for the process in its ids",
    "NOETL_OBJECT_STORE_BACKEND": _WHERE_RESULTS_LIE,
    "NOETL_OBJECT_STORE_GCS_AUTH": _GOOGLE,
    "NOETL_OBJECT_STORE_GCS_BUCKET": _WHERE_RESULTS_LIE,
    "NOETL_OBJECT_STORE_GCS_ENDPOINT": _WHERE_RESULTS_LIE,
    "NOETL_OBJECT_STORE_GCS_TOKEN": _GOOGLE,
    "NOETL_PROJECTOR_METRICS_PORT": "remove it: /metrics of the server has the read models, too",
    "NOETL_PVC_MOUNT_PATH": _WHERE_RESULTS_LIE,
    "NOETL_PVC_TIER_THRESHOLD_BYTES": "remove it: results of every size lie in one place",
    "NOETL_REGION": "use noetl worker --label region=…, NOETL_RESULT_CELL_REGION for results",
    "NOETL_RESULT_MATERIALIZER_ENABLED": _ALWAYS,
    "NOETL_RESULT_MINT_AUTHORITATIVE": _ALWAYS,
    "NOETL_RESULT_PRODUCER_STAGE": _ALWAYS,
    "NOETL_RESULT_TIER_DR": "remove it, and ask for it: noetl results verify --all --repair",
    "NOETL_RESULT_TIER_GC": "remove it, and ask for it: noetl results gc --delete",
    "NOETL_RESULT_URI_ACCEPT": _ALWAYS,
    "NOETL_RESULT_URI_RESOLVE": _ALWAYS,
    "NOETL_RUNTIME_SCHEDULER_LOCALITY_PREFERENCE": "use NOETL_LOCALITY_PREFERENCE",
    "NOETL_SHARD_COUNT": "use NOETL_RESULT_SHARD_COUNT for the keys of results",
    "NOETL_SIDE_EFFECT_BARRIER": _ALWAYS,
    "NOETL_ZONE": "use noetl worker --label zone=…",
}
"""Name -> what to do about it."""

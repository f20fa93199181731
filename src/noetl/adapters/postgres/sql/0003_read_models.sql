-- Read models. `canonical` is the state; `state` is a copy that SQL can look into.
-- Ids compare by code point, so pages have the same order in every database.
CREATE TABLE IF NOT EXISTS noetl.projection (
    tenant_id       text COLLATE "C" NOT NULL,
    organization_id text COLLATE "C" NOT NULL,
    projection_type text COLLATE "C" NOT NULL,
    projection_id   text COLLATE "C" NOT NULL,
    execution_id    bigint NOT NULL,
    version         bigint NOT NULL,
    position        bigint NOT NULL,
    source_event_id bigint NOT NULL,
    updated_at      timestamptz NOT NULL,
    status          text COLLATE "C",
    checksum        text NOT NULL,
    meta            json NOT NULL,
    state           jsonb NOT NULL,
    canonical       bytea NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, projection_type, projection_id)
) WITH (fillfactor = 80);
CREATE INDEX IF NOT EXISTS idx_projection_execution ON noetl.projection
    (tenant_id, organization_id, execution_id, projection_type, projection_id);
-- A column of its own, not an expression over `state`: updates that leave it alone stay cheap.
CREATE INDEX IF NOT EXISTS idx_projection_status ON noetl.projection
    (tenant_id, organization_id, projection_type, status, projection_id)
    WHERE status IS NOT NULL;

CREATE TABLE IF NOT EXISTS noetl.projection_checkpoint (
    consumer     text PRIMARY KEY,
    log_identity text NOT NULL,
    position     bigint NOT NULL,
    updated_at   timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS noetl.projection_snapshot (
    tenant_id       text NOT NULL,
    organization_id text NOT NULL,
    aggregate_type  text NOT NULL,
    aggregate_id    text NOT NULL,
    version         bigint NOT NULL,
    execution_id    bigint NOT NULL,
    position        bigint NOT NULL,
    last_event_id   bigint NOT NULL,
    fold_version    integer NOT NULL,
    registry_digest text NOT NULL,
    canonical_form  text NOT NULL,
    playbook_digest text,
    payload_chain   text NOT NULL,
    checksum        text NOT NULL,
    taken_at        timestamptz NOT NULL,
    state           bytea NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, aggregate_type, aggregate_id, version)
);

CREATE OR REPLACE VIEW noetl.execution AS
SELECT
    execution_id,
    state ->> 'status' AS status,
    state ->> 'last_event_type' AS last_event_type,
    state ->> 'last_node_name' AS last_node_name,
    (state ->> 'started_at')::timestamptz AS start_time,
    (state ->> 'ended_at')::timestamptz AS end_time,
    state,
    state ->> 'error' AS error,
    source_event_id AS last_projected_event_id,
    tenant_id,
    organization_id
FROM noetl.projection
WHERE projection_type = 'execution';

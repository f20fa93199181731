-- The log. Append-only: nothing updates or deletes a row, and no trigger hangs on the hot path.
DROP TRIGGER IF EXISTS trg_event_to_execution ON noetl.event;
DROP FUNCTION IF EXISTS noetl.trg_execution_state_upsert() CASCADE;

-- `canonical` is the event. All other columns are copies for SQL: `jsonb` changes how numbers look,
-- so nothing is ever read back from them. Partitions by range of execution ids are ranges of time.
-- Wide columns come last, and numbers before text, so that padding stays small.
CREATE TABLE IF NOT EXISTS noetl.event (
    execution_id        bigint NOT NULL,
    stream_version      bigint NOT NULL,
    position            bigint NOT NULL,
    event_id            bigint NOT NULL,
    prev_event_id       bigint,
    parent_event_id     bigint,
    parent_execution_id bigint,
    causation_id        bigint,
    catalog_id          bigint,
    stage_id            bigint,
    frame_id            bigint,
    event_time          timestamptz NOT NULL,
    ingest_time         timestamptz NOT NULL,
    created_at          timestamptz GENERATED ALWAYS AS (event_time) STORED,
    duration            double precision,
    schema_version      integer NOT NULL,
    schema_name         text NOT NULL,
    event_type          text NOT NULL,
    node_name           text,
    node_id             text GENERATED ALWAYS AS (node_name) STORED,
    node_type           text GENERATED ALWAYS AS (aggregate_type) STORED,
    status              text,
    error               text,
    worker_id           text,
    command_id          text,
    tenant_id           text NOT NULL,
    organization_id     text NOT NULL,
    stream_id           text GENERATED ALWAYS AS ('execution/' || execution_id::text) STORED,
    aggregate_type      text NOT NULL,
    aggregate_id        text NOT NULL,
    producer            text NOT NULL,
    correlation_id      text,
    idempotency_key     text,
    payload_ref         jsonb,
    context             jsonb,
    result              jsonb,
    meta                jsonb,
    annotations         json,
    envelope_checksum   text NOT NULL,
    canonical           bytea NOT NULL,
    CONSTRAINT event_pkey PRIMARY KEY (execution_id, event_id),
    CONSTRAINT event_stream_version_key UNIQUE (execution_id, stream_version),
    CONSTRAINT chk_event_result_shape CHECK (
        result IS NULL
        OR (
            jsonb_typeof(result) = 'object'
            AND coalesce(jsonb_typeof(result -> 'status') = 'string', false)
            AND result - '{status,reference,parent_ref,context}'::text[] = '{}'::jsonb
        )
    )
) PARTITION BY RANGE (execution_id);

-- What a writer sends of an event; the place in the log is added by the insert itself.
DROP TYPE IF EXISTS noetl.event_row;
CREATE TYPE noetl.event_row AS (
    execution_id        bigint,
    stream_version      bigint,
    event_id            bigint,
    prev_event_id       bigint,
    parent_event_id     bigint,
    parent_execution_id bigint,
    causation_id        bigint,
    catalog_id          bigint,
    stage_id            bigint,
    frame_id            bigint,
    event_time          timestamptz,
    duration            double precision,
    schema_version      integer,
    schema_name         text,
    event_type          text,
    node_name           text,
    status              text,
    error               text,
    worker_id           text,
    command_id          text,
    tenant_id           text,
    organization_id     text,
    aggregate_type      text,
    aggregate_id        text,
    producer            text,
    correlation_id      text,
    idempotency_key     text,
    payload_ref         jsonb,
    context             jsonb,
    result              jsonb,
    meta                jsonb,
    annotations         json,
    envelope_checksum   text,
    canonical           bytea
);

CREATE INDEX IF NOT EXISTS idx_event_position ON noetl.event (position);

-- Facts that exist once per execution. A business object's event may have any name, also one of
-- these, which is why the predicates look at the aggregate too.
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_command_issued_command_id
    ON noetl.event (execution_id, (meta ->> 'command_id'))
    WHERE event_type = 'command.issued' AND aggregate_type = 'command';
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_loop_done_loop_id
    ON noetl.event (execution_id, (meta ->> 'loop_id'))
    WHERE event_type = 'loop.done' AND aggregate_type = 'loop';
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_loop_fanin_completed
    ON noetl.event (execution_id, (meta ->> 'epoch_id'))
    WHERE event_type = 'loop.fanin.completed' AND aggregate_type = 'loop';
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_checkpoint_committed
    ON noetl.event (execution_id, (meta ->> 'epoch_id'))
    WHERE event_type = 'checkpoint.committed' AND aggregate_type = 'execution';
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_idempotency_key
    ON noetl.event (execution_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_event_loop_id_type
    ON noetl.event (execution_id, (meta ->> 'loop_id'), event_type)
    WHERE aggregate_type = 'loop';
CREATE INDEX IF NOT EXISTS idx_event_exec_stage_event_id_desc
    ON noetl.event (execution_id, stage_id, event_id DESC)
    WHERE stage_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_event_exec_frame_event_id_desc
    ON noetl.event (execution_id, frame_id, event_id DESC)
    WHERE frame_id IS NOT NULL;

-- The last position given out. Read and set only under the append lock, which is what makes it
-- rise in commit order. Not a counter row: every append would leave a dead version of it behind,
-- and while one long reader is open none of them could be cleaned up.
CREATE SEQUENCE IF NOT EXISTS noetl.event_position MINVALUE 0 START WITH 0;

CREATE TABLE IF NOT EXISTS noetl.log_identity (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    identity text NOT NULL
);
INSERT INTO noetl.log_identity (identity) VALUES (gen_random_uuid()::text) ON CONFLICT DO NOTHING;

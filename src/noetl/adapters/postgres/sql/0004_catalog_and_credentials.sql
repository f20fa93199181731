-- Playbooks by path and version; the text is in the payload store under `digest`.
-- Paths compare by code point, so pages have the same order in every database.
CREATE TABLE IF NOT EXISTS noetl.catalog (
    catalog_id      bigint NOT NULL,
    version         bigint NOT NULL,
    created_at      timestamptz NOT NULL,
    tenant_id       text COLLATE "C" NOT NULL,
    organization_id text COLLATE "C" NOT NULL,
    path            text COLLATE "C" NOT NULL,
    kind            text NOT NULL,
    digest          text NOT NULL,
    name            text NOT NULL,
    description     text,
    meta            json NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, path, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_catalog_id ON noetl.catalog (catalog_id);

-- `data_encrypted` opens only with the key that `key_id` names, and only in this row.
CREATE TABLE IF NOT EXISTS noetl.credential (
    id              bigint NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    tenant_id       text COLLATE "C" NOT NULL,
    organization_id text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    type            text NOT NULL,
    key_id          text NOT NULL,
    description     text,
    tags            text[] NOT NULL,
    meta            json NOT NULL,
    data_encrypted  bytea NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, name)
);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_credential_id ON noetl.credential (id);

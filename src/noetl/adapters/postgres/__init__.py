"""The production log: one PostgreSQL database, schema `noetl`."""

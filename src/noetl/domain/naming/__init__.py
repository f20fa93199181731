"""Names of everything: `noetl://` URIs, where results lie, and the cells that hold them. Pure."""

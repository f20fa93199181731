"""The HTTP API: one table of routes over the runtime, problems as documents."""

"""Settings in, running program out. The only room that picks adapters."""

"""Real servers from wheels, for tests and for `noetl dev`. Linux only; nothing is downloaded."""

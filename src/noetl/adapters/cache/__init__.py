"""Copies of results on this machine: in memory, in shared memory, on the disk."""

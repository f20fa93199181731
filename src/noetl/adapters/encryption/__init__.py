"""Secrets as bytes that nobody reads without the key."""

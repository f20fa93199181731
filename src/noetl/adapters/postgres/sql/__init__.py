"""Numbered migrations: applied in order, once, and never edited after a release."""

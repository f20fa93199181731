"""Spans to whoever collects them."""

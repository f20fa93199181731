"""How events look at rest and in flight."""

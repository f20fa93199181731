"""The loops that carry out what the domain decides."""

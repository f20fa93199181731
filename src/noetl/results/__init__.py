"""Results too large for an event: named, encoded, stored, and found again."""

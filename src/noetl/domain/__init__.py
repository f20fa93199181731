"""What is true and what should happen next. No IO, clock, randomness or logging."""

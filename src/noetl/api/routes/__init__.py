"""Routes by noun: each module says what its paths take and give."""

"""The pipeline interpreter: ordered tasks, rules, retries and jumps for one row of work."""

"""One run of a playbook: its state and the fold that builds it."""

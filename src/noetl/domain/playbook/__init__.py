"""The author's playbook as data."""

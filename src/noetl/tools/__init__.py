"""What a task can do. One file per tool, and one line in the registry."""

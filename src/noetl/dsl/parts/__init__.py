"""Plain data to the parts of a playbook, one module per part."""

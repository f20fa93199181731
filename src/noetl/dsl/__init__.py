"""YAML text <-> playbook model. Text in, values out."""

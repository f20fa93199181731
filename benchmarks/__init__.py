"""Measurements, each printed beside its own limit measured in the same run."""

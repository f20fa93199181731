"""A package by name, so that no folder called tests in an installed wheel can stand in for it."""

"""Spark as a source of slots: a driver in a process of its own, and jobs that run our functions."""

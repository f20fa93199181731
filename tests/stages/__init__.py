"""Stages on every engine."""

import pytest

# The suite's modules are no test modules by name; what their asserts compare is worth seeing.
pytest.register_assert_rewrite(
    *(f"{__name__}.{part}_cases" for part in ("row", "shard", "cursor", "nested", "control")),
    f"{__name__}.bucket_stage",
    f"{__name__}.engine_case",
    f"{__name__}.stage_scene",
    f"{__name__}.killed_stage",
    f"{__name__}.half_done",
)

"""Everything in lists and dicts: the reference for every port."""

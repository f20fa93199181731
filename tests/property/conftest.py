"""How the laws are tried: no deadlines, and a failure prints what brings it back."""

from hypothesis import settings

settings.register_profile("laws", deadline=None, print_blob=True, max_examples=100)
settings.load_profile("laws")

"""The words of the language: read by the builder to check, and by the schema to describe."""

"""The `noetl` command. One file per noun."""

"""One file, no server: laptops, tests and small installs."""

"""One folder per technology; inside, one file per port it serves."""

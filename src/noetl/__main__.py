"""`python -m noetl`: the command line, where its script is not on the path."""

from noetl.cli.main import main

if __name__ == "__main__":
    main()

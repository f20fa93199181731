"""The other end of the HTTP API: for the command line, and for workers on other machines."""

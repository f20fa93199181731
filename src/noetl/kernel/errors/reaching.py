"""Why nobody answered at an address, in words that people use."""


def reason_away(error: BaseException) -> str:
    """Clients of HTTP wrap what the system said; what they say themselves is for programmers."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, ConnectionRefusedError):
        return "nobody listens there"
    if type(cause).__name__ == "gaierror":  # of a library that does input and output
        return "the name of its host is not known"
    return str(error) or type(error).__name__

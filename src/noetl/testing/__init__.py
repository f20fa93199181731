"""For people who write adapters: suites, fakes and given-when-then."""

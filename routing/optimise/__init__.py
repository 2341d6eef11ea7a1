"""How a broker keeps what it knows of other homes small: fewer entries that match at least as much."""

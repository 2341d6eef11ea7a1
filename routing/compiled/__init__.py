"""Many events at once, in compiled loops over flat arrays: no Python object is made for an event."""

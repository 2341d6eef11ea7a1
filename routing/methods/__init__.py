"""Methods that can be exchanged: how events are matched and forwarded, and who is told of a filter."""

"""Bloom filters of constraints: an event's bits lead it to the filters whose bits are all among them."""

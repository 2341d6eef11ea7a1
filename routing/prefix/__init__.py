"""Prefix forwarding: content is matched once, and the result travels with the event as a tree of numbers."""

"""Routing tables as graphs of covering: Siena's filters poset, poset-derived forests, and both together."""

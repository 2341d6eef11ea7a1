"""Forwarding by counting: predicates of interfaces, matched by counting satisfied constraints."""

"""Covering work that clients do for a router: routing table offloading (RTO) and fixed filtersets (FF)."""

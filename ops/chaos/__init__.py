"""Faults while events flow: `branchline chaos`, and the clients whose history decides what went wrong."""

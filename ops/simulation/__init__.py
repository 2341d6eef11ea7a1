"""`branchline simulate`: runs that are described by a file, and give the same tables and plots every time."""

"""What a person touches: the `branchline` command and its parts."""

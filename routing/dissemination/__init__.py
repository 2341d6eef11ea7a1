"""Who is told of which filter, where not everybody is told of all: filters go along a tree, link by link."""

"""The Spark jobs: sources, the stateful operator, the sink, and the session they run in."""

"""CESQL, the CloudEvents expression language, version 1: its tree, its values, casts and errors."""

"""The pure core: values, filters, subscriptions and the shard that decides who gets what.

Nothing in here does I/O, reads a clock, draws a random number or knows of Spark or Kafka. The
streaming jobs, the simulator and the tests all drive this same code.
"""

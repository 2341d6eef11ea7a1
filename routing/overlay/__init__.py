"""The overlay of brokers: who is linked with whom, what they tell each other, and where an event goes."""

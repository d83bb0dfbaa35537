"""Measurement of a policer or shaper from the near end: the exchange of bursts, and their order."""

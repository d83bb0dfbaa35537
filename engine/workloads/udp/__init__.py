"""The arithmetic of datagrams: loss and reordering, delay variation, pacing, and the search for a rate.

Pure: knows neither socket nor event loop, and takes the time as an argument. May import model.
Public: sequence_tracker.SequenceTracker, delay_variation.Jitter and DelayVariation, pacing.Pacer,
rate_search.RateSearch and LossFreeSearch.
"""

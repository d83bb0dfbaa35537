"""Sweeps: carried out and stored (`sweep_session`), as tables (`sweep_words`), on the screen (`sweep_screen`)."""

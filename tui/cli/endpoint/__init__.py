"""The service that `linkgauge endpoint` runs, and its screen."""

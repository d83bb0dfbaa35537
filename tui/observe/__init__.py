"""The screen of `linkgauge observe`: the connections of other programs, and one of them in gauges."""

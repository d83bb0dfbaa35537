"""linkgauge tells whether a network link delivers what a link of its kind should, and if not, why not."""

__version__ = "1.0.0"

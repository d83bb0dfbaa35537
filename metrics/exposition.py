"""Readings as text: the format of Prometheus, or OpenMetrics if the scraper asks for it.

The only module that knows prometheus_client. Import it only when metrics are asked for.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .families import Family, Reading

_TYPES: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}


class _Readings(Collector):
    """Readings for the encoders of prometheus_client."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with all its samples: Prometheus refuses a metric that begins twice."""
        groups: dict[Family, list[Reading]] = {}
        for reading in self._readings:
            groups.setdefault(reading.family, []).append(reading)
        for family, readings in groups.items():
            metric = _TYPES[family.kind](family.name, family.help, labels=family.labels)
            for reading in readings:
                metric.add_metric(reading.labels, reading.value)
            yield metric


def encode(readings: Iterable[Reading], accept: str = "") -> tuple[bytes, str]:
    """Return readings as text, and its content type.

    `accept` is the request's Accept header. Without it the text has Prometheus' own format, for text files and
    gateways.
    """
    encoder, content_type = choose_encoder(accept)
    return encoder(_Readings(readings)), content_type

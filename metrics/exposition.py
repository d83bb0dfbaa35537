"""Readings as text: the format of Prometheus, or OpenMetrics for a scraper that asks for it.

The only module that knows prometheus_client: it is imported once metrics are asked for.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .families import Reading, group_by_family

ReadMetrics = Callable[[], Iterable[Reading]]

_TYPES: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}


class _Readings(Collector):
    """Readings, as the encoders of prometheus_client take them."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with its samples."""
        for family, readings in group_by_family(self._readings):
            metric = _TYPES[family.kind](family.name, family.help, labels=family.labels)
            for reading in readings:
                metric.add_metric(reading.labels, reading.value)
            yield metric


def encode(readings: Iterable[Reading], accept: str = "") -> tuple[bytes, str]:
    """Return readings as text, and its content type.

    `accept` is the header of the request; without it the text is in Prometheus' own format, which text files and
    gateways take.
    """
    encoder, content_type = choose_encoder(accept)
    return encoder(_Readings(readings)), content_type

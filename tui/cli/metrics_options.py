"""The options of a command whose numbers Prometheus gets: `endpoint`, `observe` and `watch`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import require_extra
from ..words import parsing
from .click_extension.option_fields import option

if TYPE_CHECKING:
    from ...metrics.publication import PublishingPlan

_METRICS: Final = "Metrics"


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """The destinations of metrics."""

    metrics: str | None = option(
        _METRICS,
        "Serve metrics to Prometheus at http://ADDR:PORT/metrics; without ADDR on 127.0.0.1 only.",
        brief="Serve metrics to Prometheus.",
        metavar="[ADDR:]PORT",
    )
    textfile: Path | None = option(
        _METRICS, "Write metrics to FILE.prom for node_exporter's textfile collector.", metavar="FILE"
    )
    push: str | None = option(
        _METRICS, "Push metrics to a Pushgateway after each test, such as http://gateway:9091.", metavar="URL"
    )

    def to_plan(self) -> "PublishingPlan | None":
        """Return where metrics go, None for nowhere.

        Raises:
            PlanError: an address or the file's name cannot be used.
            ExtraMissing: prometheus_client is not installed.
        """
        if self.metrics is None and self.textfile is None and self.push is None:
            return None
        from ...metrics.publication import PublishingPlan

        listen = None if self.metrics is None else parsing.metrics_address(self.metrics)
        file = None if self.textfile is None else str(self.textfile.absolute())
        plan = PublishingPlan(listen, file, self.push)
        require_extra("metrics need prometheus_client", "metrics", "prometheus_client")
        return plan

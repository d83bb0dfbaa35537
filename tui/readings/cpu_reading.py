"""The reading of the CPU panel: the load of one end's cores, and the CPU time per MiB. Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...engine.model.directions import End
from ...engine.results.rate_and_loss import percent_of

if TYPE_CHECKING:
    from .cockpit_snapshot import CockpitSnapshot


@dataclass(frozen=True, slots=True)
class CpuReading:
    """The CPU load of one end. `cores` are percents; core numbers are the kernel's."""

    end: End
    host_percent: float | None = None
    hottest_core: int | None = None
    hottest_percent: float | None = None
    hottest_kernel_percent: float | None = None
    msec_per_mib: float | None = None
    cores: tuple[float, ...] = ()


def cpu_reading(view: "CockpitSnapshot", end: End) -> CpuReading:
    """Return the load of one end: in the last second during a run, in the whole run after it.

    The counters of CPU time move in steps of 10 ms, which is much of a single interval.
    """
    if view.readings is None:
        return CpuReading(end)
    if view.summary is not None:
        whole, times = view.summary.near_cpu if end is End.NEAR else view.summary.far_cpu, ()
    else:
        shown = view.readings.meter.shown
        payload_bytes = sum(shown.received[flow].bytes for flow in view.readings.settings.direction.flows)
        whole, times = shown.ends[end].summary(payload_bytes), shown.ends[end].cores or ()
    cores = whole.core_percents
    hottest = cores.index(max(cores)) if cores else None
    busiest = times[hottest] if times and hottest is not None else None
    return CpuReading(
        end,
        whole.host_percent,
        hottest,
        whole.hottest_core_percent,
        busiest and percent_of(busiest.system_ns + busiest.softirq_ns, busiest.busy_ns + busiest.idle_ns),
        whole.msec_per_mib,
        cores,
    )

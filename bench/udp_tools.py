"""The entries of UDP: each tool with its sender at a rate, its server on loopback or beyond a veth pair."""

from dataclasses import replace

import outputs
from namespace import LOOPBACK, Place
from tools import BITS, IPERF3, LINKGAUGE, SELF, XFR, ClientCommand, Entry


def linkgauge_udp(*options: str, place: Place = LOOPBACK, unit: str = BITS) -> Entry:
    """Return linkgauge's datagrams with options, without a limit."""

    def client_at(bit_s: int | None) -> ClientCommand:
        rate = "max" if bit_s is None else f"{max(1_000, bit_s) / 1e6:.6f}M"

        def command(port: int, seconds: int) -> list[str]:
            base = [*SELF, "run", f"{place.host}:{port}", "--json", "--seconds", str(seconds)]
            return [*base, "--workload", "udp", "--rate", rate, *options]

        return command

    def serve(port: int) -> list[str]:
        return [*SELF, "endpoint", "--bind", place.host, "--port", str(port), "--open"]

    label = " ".join(("linkgauge run --workload udp --rate max", *options))
    parse = outputs.linkgauge_rate if unit == BITS else outputs.linkgauge_datagram_rate
    return Entry(
        *(label, LINKGAUGE, client_at(None), parse, unit),
        own_server=serve,
        place=place,
        parse_datagrams=outputs.linkgauge_datagrams,
        client_at=client_at,
    )


def linkgauge_at_rate(rate: str, bit_s: int, *options: str) -> Entry:
    """Return linkgauge's datagrams at a rate: its own rate is that of the sender, and is compared with this one."""
    entry = linkgauge_udp(*options).at_rate(bit_s)
    label = " ".join(("linkgauge run --workload udp --rate", rate, *options))
    return replace(entry, label=label, parse=outputs.linkgauge_sent_rate, requested_bit_s=bit_s)


def iperf3_udp(*options: str, place: Place = LOOPBACK, unit: str = BITS) -> Entry:
    """Return iperf3's datagrams with options, without a limit."""

    def client_at(bit_s: int | None) -> ClientCommand:
        def command(port: int, seconds: int) -> list[str]:
            base = ["iperf3", "-c", place.host, "-p", str(port), "-J", "-t", str(seconds)]
            return [*base, "-u", "-b", str(bit_s or 0), *options]

        return command

    label = " ".join(("iperf3 -u -b 0", *options))
    parse = outputs.iperf3_rate if unit == BITS else outputs.iperf3_datagram_rate
    return Entry(
        *(label, IPERF3, client_at(None), parse, unit),
        place=place,
        parse_datagrams=outputs.iperf3_datagrams,
        client_at=client_at,
    )


def xfr_udp(*options: str, place: Place = LOOPBACK) -> Entry:
    """Return xfr's datagrams, which have 1400 bytes, with options, without a limit."""

    def client_at(bit_s: int | None) -> ClientCommand:
        def command(port: int, seconds: int) -> list[str]:
            base = ["xfr", place.host, "--json", "--no-tui", "--port", str(port), "-t", f"{seconds}s"]
            return [*base, "-u", "-b", str(bit_s or 0), *options]

        return command

    return Entry(
        *(" ".join(("xfr -u -b 0", *options)), XFR, client_at(None), outputs.xfr_rate),
        place=place,
        parse_datagrams=outputs.xfr_datagrams,
        client_at=client_at,
    )

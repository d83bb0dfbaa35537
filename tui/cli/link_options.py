"""The options of the link that a preset describes: how it differs from the preset; the language of its name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..words import parsing
from .click_extension.option_fields import flag, option

if TYPE_CHECKING:
    from ...presets.wire import Variant

_LINK: Final = "Link, if it differs from the preset's"


def lang_option() -> Any:
    """Return the option of the language of the presets' names."""
    return option("", "Language of the presets' names.", metavar="en|ja")


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """The differences of a link from its preset's."""

    line_rate: str | None = option(
        _LINK,
        "Line rate: 100M, 2.5G, 10Gb.",
        brief="Line rate: 100M, 10G. [what the NICs report]",
        metavar="RATE",
        shown="the preset's, or what the NICs report",
    )
    mtu: str | None = option(_LINK, "Largest IP packet in bytes.", metavar="N", shown="the preset's")
    ipv6: bool = flag(_LINK, "TCP over IPv6 instead of IPv4.")
    vlan: str = option(_LINK, "VLAN tags of a frame: 0, 1, or 2 for QinQ.", default="0", metavar="N")
    tunnel: str | None = option(
        _LINK,
        "Tunnel in the link: vxlan, wireguard, gre or pppoe.",
        metavar="NAME",
        shown="the preset's, if any",
    )
    timestamps: bool | None = option(
        _LINK,
        "TCP timestamps (RFC 7323) in use, or not.",
        "--timestamps/--no-timestamps",
        shown="the preset's",
    )

    def to_variant(self) -> "Variant":
        """Return the variant for the wire model; raise PlanError for the first bad value."""
        from ...presets.wire import Variant

        return Variant(
            ip=6 if self.ipv6 else 4,
            timestamps=self.timestamps,
            vlan_tags=parsing.integer(self.vlan, "VLAN tags", "give 0, 1 or 2 (QinQ)"),
            tunnel=None if self.tunnel is None else parsing.tunnel(self.tunnel),
            line_rate_bit_s=None if self.line_rate is None else parsing.line_rate_bit_s(self.line_rate),
            mtu_bytes=None if self.mtu is None else parsing.mtu_bytes(self.mtu),
        )

    @property
    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        values = {"--line-rate": self.line_rate, "--mtu": self.mtu, "--tunnel": self.tunnel}
        flags = {"--ipv6": self.ipv6, "--timestamps": self.timestamps, "--no-timestamps": self.timestamps is False}
        return [
            *("--vlan", self.vlan),
            *(word for name, value in values.items() if value is not None for word in (name, value)),
            *(name for name, is_given in flags.items() if is_given),
        ]

"""What a test is held against: the preset that was named, or the one that both ends' interfaces come to."""

from dataclasses import dataclass, replace

from ...engine.model.errors import PlanError
from ...engine.near.connect import FarEnd
from ...presets.auto_select import AUTO
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant
from ...presets.preset import Preset
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..services.preset_choice import pick_preset
from .user_settings import load_catalog_with_warnings


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A preset with the options of its link, and what there is to say of the choice."""

    preset: Preset | None
    variant: Variant
    notices: tuple[str, ...] = ()


def find_preset(preset_id: str | None, catalog: Catalog | None = None) -> Preset | Catalog | None:
    """Return the preset of that id; for `auto` all of them, to pick from."""
    if preset_id is None:
        return None
    catalog = catalog or load_catalog_with_warnings()
    return catalog if preset_id == AUTO else catalog.find(preset_id)


def check_link_options(preset: Preset | Catalog | None, variant: Variant) -> None:
    """Refuse options that the preset's link cannot be had with."""
    if preset is None and variant != DEFAULT_VARIANT:
        raise PlanError(
            "link options", variant.description, "they go with a preset: give --preset auto, or a preset's id"
        )
    if isinstance(preset, Preset):
        check_variant(preset, variant)


async def choose_preset(preset: Preset | Catalog | None, variant: Variant, far: FarEnd) -> PresetChoice:
    """Return what was asked for, or what both ends' interfaces come to."""
    if not isinstance(preset, Catalog):
        return PresetChoice(preset, variant)
    picked = await pick_preset(preset, far, variant.line_rate_bit_s)
    notices = [f"preset {picked.preset.id}: {picked.reason}", *picked.warnings]
    if picked.preset.link.framing != "none":
        variant = variant.with_defaults(picked.variant)
        check_variant(picked.preset, variant)
        return PresetChoice(picked.preset, variant, tuple(notices))
    unused = replace(variant, line_rate_bit_s=None).description  # of a line rate the warnings have told
    if unused:
        notices.append(f"{unused}: not used, {picked.preset.id} has no line")
    return PresetChoice(picked.preset, picked.variant, tuple(notices))

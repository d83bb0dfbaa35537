"""The preset and the pass mark of a test: as typed, as in the user's settings, or by both ends' interfaces."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...engine.model.errors import UsageError
from ...engine.model.events import Expectation
from ...engine.model.plan import Plan, Settings
from ...presets.auto_select import AUTO
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant, find_expectation
from ...presets.preset import Preset
from ...presets.sending_rate import SendingRate, choose_rate
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..services.preferences import FILE_NAME, read_preferences
from ..services.storage import config_dir
from ..services.user_presets import load_presets, problem_lines
from ..text.numbers import sanitize
from .output import print_stderr

if TYPE_CHECKING:
    from ...engine.near.connect import FarEnd


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A preset, the options of its link, and notices about the choice."""

    preset: Preset | None
    variant: Variant
    notices: tuple[str, ...] = ()


def load_catalog_with_warnings() -> Catalog:
    """Return the built-in and the user's presets; print a warning for each that cannot be used."""
    catalog = load_presets()
    for line in problem_lines(catalog):
        print_stderr(line)
    return catalog


def read_pass_mark() -> float:
    """Return the pass mark of the preferences, which the app uses too; print it where it is not the default."""
    loaded = read_preferences(config_dir())
    for problem in loaded.problems:
        print_stderr(sanitize(problem))
    pass_mark = loaded.preferences.pass_mark
    if pass_mark != DEFAULT_PASS_PERCENT:
        print_stderr(f"pass mark {pass_mark:g} % from {config_dir() / FILE_NAME}; --pass-mark gives another")
    return pass_mark


def find_preset(preset_id: str | None, catalog: Catalog | None = None) -> Preset | Catalog | None:
    """Return the preset of that id; for `auto` the catalog, for `choose_preset` later."""
    if preset_id is None:
        return None
    catalog = catalog or load_catalog_with_warnings()
    return catalog if preset_id == AUTO else catalog.find(preset_id)


def check_link_options(preset: Preset | Catalog | None, variant: Variant) -> None:
    """Raise UsageError for link options without a preset, PlanError for impossible ones."""
    if preset is None and variant != DEFAULT_VARIANT:
        raise UsageError(
            f"link options ({variant.description}) need a preset; give --preset auto, or a preset's id"
        )
    if isinstance(preset, Preset):
        check_variant(preset, variant)


async def choose_preset(preset: Preset | Catalog | None, variant: Variant, far: "FarEnd") -> PresetChoice:
    """Return the preset; from a catalog the one that fits the interfaces of both ends."""
    if not isinstance(preset, Catalog):
        return PresetChoice(preset, variant)
    from ..services.preset_choice import pick_preset

    selection = await pick_preset(preset, far, variant.line_rate_bit_s)
    notices = [f"preset {selection.preset.id}: {selection.reason}", *selection.warnings]
    if selection.preset.link.framing != "none":
        variant = variant.with_defaults(selection.variant)
        check_variant(selection.preset, variant)
        return PresetChoice(selection.preset, variant, tuple(notices))
    unused = replace(variant, line_rate_bit_s=None).description  # the warnings cover the line rate
    if unused:
        notices.append(f"{unused}: not used, {selection.preset.id} has no line")
    return PresetChoice(selection.preset, selection.variant, tuple(notices))


def with_sending_rate(plan: Plan, rate: SendingRate | None, choice: PresetChoice) -> tuple[Plan, PresetChoice]:
    """Return a plan of datagrams with its rate, and the choice with a notice about one that nobody typed.

    Raises PlanError for `expected` where no rate is expected.
    """
    if not plan.workload.is_datagram:
        return plan, choice
    preset = choice.preset

    def find(settings: Settings) -> Expectation:
        if preset is None:
            return Expectation()
        return find_expectation(preset, settings, plan.workload, variant=choice.variant)

    settings, notice = choose_rate(plan.settings, rate, find, None if preset is None else preset.id)
    notices = (*choice.notices, notice) if notice else choice.notices
    return replace(plan, settings=settings), replace(choice, notices=notices)

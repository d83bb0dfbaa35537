"""The registry of actions: keys, footers and help pages."""

import pytest
from linkgauge.tui.endpoint.endpoint_screen import EndpointScreen
from linkgauge.tui.gauges.path_screen import PathScreen
from linkgauge.tui.history.compare_screen import CompareScreen
from linkgauge.tui.history.history_screen import HistoryScreen
from linkgauge.tui.history.replay_screen import ReplayScreen
from linkgauge.tui.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.kit.actions import ACTIONS, ScreenKind, actions_by_topic, actions_of, bindings
from linkgauge.tui.mesh.mesh_screen import MeshScreen
from linkgauge.tui.observe.connection_screen import ConnectionScreen
from linkgauge.tui.observe.observe_screen import ObserveScreen
from linkgauge.tui.run.cockpit_screen import CockpitScreen
from linkgauge.tui.sweep.sweep_screen import SweepScreen
from linkgauge.tui.watch.watch_screen import WatchScreen
from textual.binding import Binding


@pytest.mark.parametrize("screen", ScreenKind)
def test_no_key_of_a_screen_has_two_actions(screen: ScreenKind) -> None:
    """Nor has an action two entries."""
    keys = [key for action in actions_of(screen) for key in action.keys]
    assert len(keys) == len(set(keys))
    assert len({action.id for action in actions_of(screen)}) == len(actions_of(screen))


def test_every_action_of_a_screen_has_its_method() -> None:
    """The keys of a screen are those of the registry."""
    screens = (
        CockpitScreen,
        HistoryScreen,
        StoredRunScreen,
        ReplayScreen,
        CompareScreen,
        EndpointScreen,
        SweepScreen,
        PathScreen,
    )
    by_kind = {
        each.SCREEN_KIND: each for each in (*screens, MeshScreen, WatchScreen, ObserveScreen, ConnectionScreen)
    }
    assert set(by_kind) == {*ScreenKind}
    missing = [
        (kind, action.id)
        for kind, screen in by_kind.items()
        for action in actions_of(kind)
        if not hasattr(screen, f"action_{action.id}")
    ]
    assert missing == []


def test_the_names_of_keys_match_the_keys() -> None:
    """A key without a name would be shown under that of another."""
    assert [action.id for action in ACTIONS if len(action.key_labels) not in {0, len(action.keys)}] == []


def test_the_footer_has_the_first_key_of_an_action_unless_there_is_no_room() -> None:
    """The other keys work without being shown."""
    shown = {
        each.action: each.key for each in bindings(ScreenKind.HISTORY) if isinstance(each, Binding) and each.show
    }
    assert shown["find"] == "slash"
    assert "note" not in shown
    assert "sort" not in shown
    assert {"note", "sort"} <= {each.action for each in bindings(ScreenKind.HISTORY) if isinstance(each, Binding)}


def test_the_help_of_the_endpoint_has_its_own_actions_and_that_of_the_app_all_others() -> None:
    """Help and settings belong to both; export has a text for each, since an endpoint saves no runs."""
    of_endpoint = {action.id for actions in actions_by_topic(ScreenKind.ENDPOINT).values() for action in actions}
    of_app = {action.id for actions in actions_by_topic().values() for action in actions}
    of_watch = {action.id for actions in actions_by_topic(ScreenKind.WATCH).values() for action in actions}
    of_observe = {action.id for actions in actions_by_topic(ScreenKind.OBSERVE).values() for action in actions}
    assert of_observe == {
        action.id for actions in actions_by_topic(ScreenKind.CONNECTION).values() for action in actions
    }
    of_both = {action.id for action in ACTIONS if {ScreenKind.ENDPOINT, ScreenKind.COCKPIT} <= {*action.screens}}
    assert of_endpoint & of_app == {*of_both, "export"}
    assert not any("marked" in action.help for action in actions_of(ScreenKind.ENDPOINT))
    assert of_endpoint | of_app | of_watch | of_observe == {action.id for action in ACTIONS}
    assert not {"finish", "check_now"} & of_app
    assert "toggle_run" not in of_endpoint


def test_each_entry_of_the_palette_says_what_it_does() -> None:
    """The palette shows it beside the title, where there is no page that `this` could mean."""
    for action in ACTIONS:
        assert len(action.help.split()) > 2 or action.help.startswith("Reverse"), action.id
        assert "this page" not in action.help.lower(), action.id

"""The shape of the tree: tests mirror the sources, names are unique, and the wheel has every package."""

import ast
import re
import tomllib
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("discovery", "engine", "mesh", "metrics", "observe", "presets", "tui", "watch")

# Modules without a test module of their own, and where they are tested instead.
TESTED_ELSEWHERE: dict[str, str] = {
    "engine/model/events": "data; decoded from bad input in tests/engine/model/test_serialization.py",
    "engine/near/flows/started_test": "whole tests: tests/engine/near/flows/test_flow_measurement.py",
    "tui/cli/commands/paths/flows": "tests/end_to_end/test_flows.py",
    "tui/cli/render/flow_report": "a printer of sentences and tables: tests/tui/cli/render/test_flow_sentences.py, tests/end_to_end/test_flows.py",
    "engine/results/sums/field_sums": "how sums of two times combine: tests/engine/results/test_run_totals.py and sums/test_sample_sum.py",
    "discovery/announcer": "on two real hosts: tests/discovery/test_finder.py",
    "engine/lab/kept_lab": "how labs are opened: tests/engine/lab/test_link_lab.py and test_link_keeper.py, tests/mesh/lab/test_mesh_lab.py",
    "engine/far/clients/admitted_client": "an endpoint's part: tests/engine/far/clients/test_admission.py, tests/engine/far/test_endpoint.py",
    "engine/far/clients/current_run": "a run's progress: tests/engine/far/clients/test_turns.py, tests/engine/far/test_run.py",
    "engine/control/key_proof": "a handshake's part: tests/engine/control/test_handshake.py and test_identification.py",
    "engine/far/acceptor": "an endpoint's part: tests/engine/far/test_endpoint.py, test_unproved_connections.py and clients/test_admission.py",
    "engine/host/nics/netlink": "requests to the kernel: tests/engine/host/nics/test_nic.py and queues/test_queueing_discipline.py",
    "engine/host/nics/rtnetlink": "routes, addresses and links of real interfaces: tests/engine/host/nics/test_nic.py",
    "engine/host/nics/ethtool": "line and offloads of real interfaces: tests/engine/host/nics/test_nic.py",
    "engine/iperf3/far/server_output": "a service's part: tests/engine/iperf3/far/test_service.py",
    "engine/iperf3/far/stream_counts": "a service's part: tests/engine/iperf3/far/test_service.py",
    "engine/far/datagram_sockets": "an endpoint's part: tests/engine/far/test_datagram_listener.py",
    "observe/connection_rows": "rows of real connections: tests/observe/test_observer.py",
    "observe/observation": "data without code; made in tests/observe/test_observer.py",
    "tui/cli/runners/observe_runner": "a whole command: tests/tui/cli/commands/test_observe.py",
    "tui/cli/runners/endpoint_archive": "the endpoint in one file: tests/packaging/test_endpoint_archive.py",
    "engine/browser/hosted_run": "a service's part: tests/tui/endpoint/browser/test_browser_service.py",
    "engine/browser/page_run": "a service's part: tests/tui/endpoint/browser/test_browser_service.py",
    "engine/browser/page_probe": "a service's part: tests/tui/endpoint/browser/test_browser_service.py",
    "engine/browser/metered_run": "a base class: tests/tui/endpoint/browser/test_browser_service.py",
    "engine/browser/quality_run": "a service's part: tests/tui/endpoint/nq/test_nq_service.py",
    "tui/endpoint/browser/client_run": "with its two users: tests/tui/endpoint/browser/test_browser_service.py, tests/tui/endpoint/nq/test_nq_service.py",
    "tui/endpoint/browser/page_files": "over both versions of HTTP: tests/tui/endpoint/browser/test_browser_service.py, tests/tui/endpoint/nq/test_nq_service.py",
    "tui/endpoint/browser/request_check": "over both versions of HTTP: tests/tui/endpoint/browser/test_browser_service.py, tests/tui/endpoint/nq/test_nq_service.py",
    "engine/near/foreign/metered_session": "with TLS: tests/tui/endpoint/browser/test_browser_service.py and tests/engine/speedtest/test_run.py",
    "engine/near/foreign/hosted_probe": "pings of whole runs: tests/engine/speedtest/test_run.py, tests/tui/endpoint/browser/test_browser_service.py",
    "engine/near/foreign/unseen_far_end": "a base class: tests/engine/speedtest/test_run.py and tests/engine/iperf3/near/test_run.py",
    "engine/speedtest/payload_movers": "with TLS: tests/engine/speedtest/test_run.py",
    "engine/speedtest/speed_client": "a base class: tests/engine/speedtest/test_librespeed.py and test_ndt7.py",
    "engine/speedtest/http_wire": "its two kinds: tests/engine/speedtest/test_http_connection.py and test_run.py",
    "tui/endpoint/browser/page_client": "a service's part: tests/tui/endpoint/browser/test_browser_service.py",
    "engine/browser/page_far_end": "runs with a page: tests/tui/endpoint/browser/test_waiting_room.py",
    "tui/cli/runners/app_backend": "tests/end_to_end/test_terminal.py and test_waiting_app.py",
    "tui/readings/waited_device": "values; tests/tui/run/test_join_dialog.py, tests/tui/endpoint/browser/test_waiting_room.py",
    "tui/endpoint/browser/page_socket": "a service's part: tests/tui/endpoint/browser/test_browser_service.py",
    "tui/http/page_headers": "data; tests/tui/cli/web/test_web_server.py, tests/tui/endpoint/browser/test_browser_service.py",
    "mesh/over_ssh/dask_process": "on hosts that ssh reaches: tests/mesh/over_ssh/test_ssh_cluster.py",
    "mesh/over_ssh/host_login": "on hosts that ssh reaches: tests/mesh/over_ssh/test_ssh_cluster.py",
    "tui/cli/commands/paths/shape": "tests/end_to_end/test_shape.py",
    "engine/path/hop_locator": "through chains of hosts: tests/end_to_end/test_mtu_hops.py",
    "engine/near/path_tracing": "whole runs: tests/engine/near/test_path_runs.py, tests/end_to_end/test_path_hops.py",
    "engine/workloads/probes/probe_echo": "with its two users: tests/engine/far/probes/test_echo_responder.py, tests/engine/path/test_hop_prober.py",
    "engine/results/path/path_result": "data without code; made in tests/engine/results/path/test_hop_judgement.py",
    "engine/ssh/ssh_process": "with its two users: tests/engine/ssh/test_ssh_far_end.py, tests/mesh/over_ssh/test_ssh_cluster.py",
    "mesh/check/reached_endpoints": "a worker's part: tests/mesh/check/test_mesh_check.py, tests/end_to_end/test_mesh_check.py",
    "tui/cli/runners/mesh_checker": "a whole check: tests/end_to_end/test_mesh_check.py",
    "engine/ssh/declined_questions": "with its two users: tests/engine/ssh/test_ssh_far_end.py, tests/mesh/over_ssh/test_ssh_cluster.py",
    "mesh/events": "data without code",
    "mesh/figures": "data; its matrices in tests/mesh/reading/test_findings.py",
    "mesh/over_ssh/ssh_mesh": "on hosts that ssh reaches: tests/end_to_end/test_mesh_ssh.py",
    "tui/kit/action": "data without code",
    "tui/kit/observe_actions": "part of the registry: tests/tui/kit/test_actions.py",
    "tui/observe/observe_lines": "lines of the screen: tests/tui/observe/test_observe_screen.py and test_snapshots.py",
    "tui/observe/connection_screen": "opened from the table: tests/tui/observe/test_observe_screen.py and test_snapshots.py",
    "tui/words/observed": "tests/tui/observe/test_observe_screen.py, tests/tui/cli/render/test_observed_table.py",
    "tui/kit/screens/feature_app": "tests/tui/mesh/test_mesh_screen.py, tests/tui/sweep/test_sweep_screen.py, tests/tui/history",
    "tui/kit/screens/progress_screen": "a base class: tests/tui/mesh/test_mesh_screen.py and tests/tui/watch/test_watch_screen.py",
    "tui/run/run_services": "values and stored sweeps and meshes: tests/tui/sweep/test_sweep_screen.py, tests/tui/cli/commands/test_mesh.py",
    "engine/workloads/udp/session": "a base class: tests of sender and receiver beside it",
    "engine/workloads/udp/socket_options": "options of real sockets: tests of sender and receiver beside it",
    "engine/far/base_run": "a base class: tests/engine/far/test_run.py and tests/engine/iperf3/far/test_run.py",
    "engine/near/base_run": "a base class: tests/engine/near/test_run.py and tests/engine/iperf3/near/test_run.py",
    "engine/results/responsiveness/interval_figures": "columns and lines of an interval: tests/engine/results/test_csv_export.py and test_json_stream.py",
    "engine/results/measured_result": "a result's rates: tests/engine/results/test_run_result.py and test_figure_codec.py",
    "engine/results/interval_result": "rows and lines of an interval: tests/engine/results/test_csv_export.py and test_json_stream.py",
    "engine/results/responsiveness/intervals": "a recorder's part: tests/engine/results/responsiveness/test_recorder.py",
    "engine/results/responsiveness/loads": "a recorder's part: tests/engine/results/responsiveness/test_recorder.py",
    "engine/results/responsiveness/plan": "tests/tui/words/test_responsiveness.py and tests/end_to_end/test_respond.py",
    "engine/results/responsiveness/result": "data without code; its limits in tests/engine/results/responsiveness/test_round_trips.py",
    "engine/results/responsiveness/steadiness": "a recorder's part: tests/engine/results/responsiveness/test_recorder.py",
    "engine/host/end_signals": "signals of real commands: tests/end_to_end/test_ignored_signals.py, tests/tui/cli/test_termination.py",
    "engine/results/run_log/write_backlog": "the writer's queue: tests/engine/results/run_log/test_writer.py",
    "engine/results/run_log/stored_events": "how events are read: tests/engine/results/run_log/test_store.py and test_thinning.py",
    "tui/watch/running/peer_test": "whole tests: tests/tui/watch/running/test_watch_session.py",
    "tui/kit/drawing/redacted_lines": "lines in tests/tui/words/test_redaction.py, screens in tests/tui/app/test_app.py",
    "tui/session/setting_table": "data; parsed in tests/tui/session/test_settings_file.py",
    "tui/cli/click_extension/option_fields": "options of every command: tests/tui/cli/test_main.py and click_extension/test_command_help.py",
    "tui/cli/link_options": "options of most commands: tests/tui/cli/test_main.py (wrong command lines)",
    "tui/cli/output_options": "options of every command: tests/tui/cli/test_main.py, tests/end_to_end/test_command_line.py",
    "tui/cli/plan_options": "options of every test: tests/tui/cli/test_main.py (wrong command lines), tests/end_to_end/test_shared_endpoint.py, values in tests/tui/words/test_parsing.py",
    "tui/cli/runners/run_test": "a whole run: tests/end_to_end/test_command_line.py",
    "tui/cli/runners/recording": "whole runs, sweeps and meshes that signals end: tests/end_to_end/test_command_line_log.py",
    "tui/cli/runners/mesh_runner": "a whole mesh: tests/tui/cli/commands/test_mesh.py",
    "tui/cli/render/mesh": "a printer of rows: tests/tui/cli/commands/test_mesh.py prints them",
    "tui/cli/runners/sweep_runner": "a whole sweep: tests/tui/cli/commands/test_sweep.py",
    "tui/cli/terminal_app": "tests/end_to_end/test_terminal.py, tests/tui/sweep/test_sweep_screen.py",
    "tui/cli/runners/endpoint_on_screen": "tests/end_to_end/test_terminal.py (endpoint --ui)",
    "tui/endpoint/served_endpoint": "tests/tui/endpoint/test_endpoint_screen.py, tests/end_to_end/test_terminal.py (endpoint --ui)",
    "tui/endpoint/endpoint_setup": "tests/tui/endpoint/test_iperf3_service.py and test_endpoint_screen.py, tests/end_to_end/test_service.py",
    "tui/endpoint/endpoint_publication": "processes: tests/end_to_end/test_prometheus.py scrapes one, tests/discovery/test_finder.py finds one",
    "tui/cli/metrics_options": "options of two commands: tests/end_to_end/test_prometheus.py, values in tests/tui/words/test_parsing.py",
    "tui/cli/runners/endpoint_runner": "a process with signals and sockets: tests/end_to_end/test_service.py",
    "tui/cli/commands/app": "tests/end_to_end/test_terminal.py, tests/tui/cli/click_extension/test_command_groups.py",
    "tui/cli/commands/endpoint": "tests/end_to_end/test_service.py, tests/tui/cli/test_main.py",
    "tui/cli/commands/lab": "tests/end_to_end/test_lab_command.py",
    "tui/cli/commands/paths/mtu": "tests/end_to_end/test_path_mtu.py",
    "tui/cli/commands/respond": "tests/end_to_end/test_respond.py, tests/tui/cli/test_usage_errors.py",
    "tui/cli/latency_options": "options of three commands: tests/end_to_end/test_respond.py, tests/tui/cli/test_usage_errors.py",
    "tui/cli/web/browser_page": "a page's process: tests/end_to_end/test_web.py",
    "tui/cli/commands/discover": "tests/discovery/test_finder.py carries it out",
    "tui/cli/web/web_command": "tests/end_to_end/test_web.py",
    "tui/cli/commands/saved_runs/runs_export": "tests/tui/cli/commands/saved_runs/test_runs.py, tests/tui/report/test_run_page.py",
    "tui/cli/commands/run": "tests/end_to_end/test_command_line.py, tests/tui/cli/test_main.py",
    "tui/gauges/responsiveness_panel": "tests/tui/run/test_responsiveness.py, and pictures beside it",
    "tui/watch/watch_lines": "tests/tui/watch/test_watch_screen.py, and pictures beside it",
    "tui/cli/render/runs": "a printer of rows: rows in tests/tui/words/test_comparison.py and test_run_line.py, printed in tests/tui/cli/commands/saved_runs/test_runs.py",
    "tui/words/table": "data without code; printed in tests/tui/kit/drawing/test_printed_table.py and tests/tui/report/test_html.py",
    "tui/cli/render/sweep": "a printer of rows: rows in tests/tui/sweep/test_sweep_words.py, printed in tests/tui/cli/commands/test_sweep.py",
}

# Test modules that test several modules together.
OF_SEVERAL_MODULES: dict[str, str] = {
    "tests/engine/near/test_path_runs": "runs that trace the path, between two real ends",
    "tests/engine/control/test_attacks_on_the_path": "a relay between two real ends, through near, control, protocol and far",
    "tests/mesh/test_hostile_worker": "a mesh beside a worker that lies: coordinator, supervisor, cluster and cell_result",
    "tests/engine/near/test_datagram_runs": "runs of UDP between two real ends, whose settings change",
    "tests/engine/near/test_responsiveness_runs": "runs that measure latency under load, between two real ends",
    "tests/engine/near/test_protocol_compatibility": "an end of version 1 of the protocol, in either role",
    "tests/engine/results/test_run_log_compatibility": "a run log of an earlier version, through run_log, meter and figure_codec",
    "tests/engine/workloads/test_transactions": "every transactional workload between two real ends",
    "tests/presets/test_source_tables": "the shipped presets against the project's copies of the documents' tables",
    "tests/presets/test_models_and_documents": "shipped documented rates against the wire model",
    "tests/tui/kit/drawing/test_textual_internals": "the private parts of Textual and Rich that rendering relies on: no module of ours",
    "tests/tui/app/test_snapshots": "pictures of all dialogs",
    "tests/tui/history/test_snapshots": "pictures of all screens of stored runs",
    "tests/tui/run/test_responsiveness": "a responsiveness test in the cockpit: its key, its refusals, its panel",
    "tests/tui/run/test_snapshots": "pictures of the cockpit in its main states",
    "tests/tui/app/test_small_terminals": "every screen in small terminals",
    "tests/tui/mesh/test_snapshots": "pictures of the screen of a mesh",
    "tests/tui/sweep/test_snapshots": "pictures of the screen of a sweep",
    "tests/tui/watch/test_snapshots": "pictures of the screen of a watch",
    "tests/tui/observe/test_snapshots": "pictures of the table of connections, and of one connection",
}

# Base names that several packages have, because each is the same thing in another role: what it is, how it is
# written, how it is drawn, how it is asked for.
SAME_ROLE = {
    "app",
    "base_run",
    "ceiling",
    "comparison",
    "datagram_handshake",
    "endpoint",
    "events",
    "interval_figures",
    "mesh",
    "path_mtu",
    "plan",
    "rate_steps",
    "run",
    "runs",
    "schedule",
    "session",
    "settings",
    "summary",
    "sweep",
}


def modules() -> list[Path]:
    """Return every module of the sources, packages' own files left out."""
    found = [path.relative_to(ROOT) for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    return [path for path in found if path.stem != "__init__"]


def test_every_module_has_a_test_module_of_its_own_or_a_reason() -> None:
    """tests/engine/protocol/test_tokens.py tests engine/protocol/tokens.py."""
    missing = {
        str(path.with_suffix(""))
        for path in modules()
        if not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()
    }
    assert missing == set(TESTED_ELSEWHERE)


def test_every_test_module_tests_a_module() -> None:
    """Beside those there are end-to-end tests, stress, and a few for several modules."""
    named = {Path("tests") / path.parent / f"test_{path.name}" for path in modules()}
    stray = [
        path.relative_to(ROOT)
        for name in PACKAGES
        for path in sorted((ROOT / "tests" / name).rglob("test_*.py"))
        if path.relative_to(ROOT) not in named
    ]
    assert {str(path.with_suffix("")) for path in stray} == set(OF_SEVERAL_MODULES)


def test_modules_with_the_same_name_play_the_same_role() -> None:
    """A stranger who looks for a module by its name finds one."""
    places: dict[str, list[Path]] = defaultdict(list)
    for path in modules():
        places[path.stem].append(path)
    assert {stem for stem, paths in places.items() if len(paths) > 1} <= SAME_ROLE


def test_every_package_is_in_the_wheel_and_says_what_it_is() -> None:
    """The root maps to the package, so that setuptools cannot find the packages by itself."""
    declared = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    )
    inits = [path for name in PACKAGES for path in (ROOT / name).rglob("__init__.py")]
    assert declared == {"linkgauge", *(".".join(("linkgauge", *p.parent.relative_to(ROOT).parts)) for p in inits)}
    undescribed = [str(path) for path in inits if not re.match(r'"""\S.{20,}', path.read_text(encoding="utf-8"))]
    assert not undescribed


def test_no_package_has_more_modules_than_a_reader_can_take_in() -> None:
    """About a dozen; a folder with more has a second subsystem in it."""
    counts: dict[Path, int] = defaultdict(int)
    for path in modules():
        counts[path.parent] += 1
    assert max(counts.values()) <= 14, counts


def imports_of(path: Path, names: dict[str, Path]) -> set[Path]:
    """Return the modules of the tree that a module imports, inside functions and for the type checker too."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = ".".join((*path.parts[: -node.level], *(node.module or "").split("."))).rstrip(".")
            targets = [package, *(f"{package}.{alias.name}" for alias in node.names)]
            found |= {names[name] for name in targets if name in names}
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    """An import that hides in a function makes a circle all the same: what two modules share belongs below both."""
    names = {".".join(path.with_suffix("").parts): path for path in modules()}
    circle: list[Path] = []
    try:
        TopologicalSorter({path: imports_of(path, names) for path in names.values()}).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert not circle


def test_no_check_of_the_engine_is_an_assertion() -> None:
    """`python -O` drops them: all that they may do is tell the type checker that a value of ours is set."""
    checks = [
        f"{path}:{node.lineno}"
        for path in modules()
        if path.parts[0] in {"discovery", "engine", "mesh", "metrics", "observe", "presets", "tui", "watch"}
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and not ast.unparse(node.test).endswith(" is not None")
    ]
    assert not checks

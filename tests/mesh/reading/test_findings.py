"""Each cause is named once and nothing else, over a grid of sizes, scatter and faults."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from linkgauge.mesh.plan import Cell, Host, MeshMode
from linkgauge.mesh.reading import find_faults

from .mesh_examples import LINE_RATE, Fault, MeshExample, fits, make_hosts, names
from .shared_joints import SharedJoint, both_ways

CODE = MeshFindingCode
SIZES = (3, 5, 8, 12, 20)


def faults_of(hosts: Sequence[Host], draw: random.Random) -> Iterator[tuple[str, tuple[Fault, ...]]]:
    """Yield every kind of fault that these hosts can show, alone and with a second one."""
    share = draw.uniform(0.3, 0.7)
    first, second, third = (host.name for host in draw.sample(hosts, 3))
    path = Fault(CODE.PATH, second, third, 0.8 * share)
    yield "none", ()
    yield "path", (path,)
    for code in (CODE.HOST, CODE.HOST_SENDS, CODE.HOST_RECEIVES):
        yield code.value, (Fault(code, first, None, share),)
    if len(hosts) >= 5:
        yield "host and path", (Fault(CODE.HOST, first, None, share), path)
        yield "two hosts", (Fault(CODE.HOST, first, None, share), Fault(CODE.HOST, second, None, 0.8 * share))
    if len(hosts) >= 6:
        for parts in (2, 3):
            slow = draw.sample(hosts, len(hosts) // parts)
            yield f"one of {parts} hosts", tuple(Fault(CODE.HOST, host.name, None, share) for host in slow)
    if hosts[0].group is not None:
        yield from faults_of_groups(hosts, share, draw)


def faults_of_groups(
    hosts: Sequence[Host], share: float, draw: random.Random
) -> Iterator[tuple[str, tuple[Fault, ...]]]:
    """Yield faults of groups of at least four hosts, and of hosts within these."""
    groups = list(dict.fromkeys(host.group for host in hosts))
    first, second = draw.sample(groups, 2)
    host = draw.choice([host for host in hosts if host.group == first])
    yield "groups", (Fault(CODE.GROUPS, first, second, share),)
    for sender, receiver in ((first, first), (first, None)):
        yield "group", (Fault(CODE.GROUP, sender, receiver, share),)
    for way, inside in ((share, 0.6 * share), (0.6 * share, share)):
        own = Fault(CODE.HOST, host.name, None, inside)
        yield "host in a slow group", (Fault(CODE.GROUP, first, first, way), own)
        yield "host behind a slow way", (Fault(CODE.GROUPS, first, second, way), own)
    if len(groups) > 2:
        for sender, receiver in ((first, None), (None, first), (None, None)):
            yield "uplink", (Fault(CODE.GROUPS, sender, receiver, share),)


def wrong_of_grid(example: MeshExample, sizes: Sequence[int], *, is_again: bool = False) -> tuple[int, list[str]]:
    """Return how many meshes were read, and those with wrong findings."""
    count, wrong = 0, []
    for size in sizes:
        draw = random.Random(f"{example.seed} {size}")  # noqa: S311 - no secret
        groups = draw.choice([0, *(groups for groups in (2, 3, 4) if size // groups >= 4)])
        for label, faults in faults_of(make_hosts(size, groups), draw):
            made = replace(example, hosts=size, groups=groups, faults=faults)
            matrix = made.make_again() if is_again else made.make()
            findings = find_faults(matrix)
            count += 1
            if not fits(findings, made.seen(matrix), matrix.hosts):
                wrong.append(f"{label}, {size} hosts in {groups} groups: {names(findings)[:4]} of {len(findings)}")
    return count, wrong


@pytest.mark.parametrize(("noise", "expected"), [(0.0, True), (0.02, False), (0.05, True)])
def test_every_kind_of_fault_is_named_and_nothing_else(noise: float, *, expected: bool) -> None:
    """With and without expected rates."""
    count, wrong = wrong_of_grid(MeshExample(0, noise=noise, expected=expected, seed=3), SIZES)
    assert count > 50
    assert not wrong


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(MeshExample(0, noise=0.03, transactions=True, seed=4), id="transactions"),
        pytest.param(MeshExample(0, noise=0.03, missing=0.1, failed=0.05, seed=5), id="missing and failed cells"),
        pytest.param(MeshExample(0, noise=0.02, host_noise=0.015, seed=6), id="hosts that differ a little"),
    ],
)
def test_faults_are_named_in_meshes_of_other_kinds(example: MeshExample) -> None:
    """Three hosts with missing cells tell too little; so do slow halves of the hosts, if delays add up."""
    _, wrong = wrong_of_grid(example, SIZES[1:])
    assert not [each for each in wrong if not (example.transactions and each.startswith("one of 2"))]


def test_cells_that_are_slow_by_chance_are_not_findings_after_a_second_measurement() -> None:
    """Three in a hundred cells scatter four times as much as the others."""
    count, wrong = wrong_of_grid(MeshExample(0, noise=0.03, tail=0.03, seed=7), SIZES[1:4], is_again=True)
    assert len(wrong) <= 0.03 * count, wrong


def test_in_much_scatter_most_faults_are_named_and_hardly_anything_else() -> None:
    """At 8 % a path must be slower by a third to stand out of a thousand cells."""
    count, wrong = wrong_of_grid(MeshExample(0, noise=0.08, seed=8), SIZES[1:])
    assert len(wrong) <= 0.1 * count, wrong


@given(
    size=st.integers(2, 16),
    noise=st.floats(0, 0.05),
    seed=st.integers(0, 10_000),
    groups=st.integers(0, 3),
    expected=st.booleans(),
    missing=st.sampled_from((0.0, 0.2)),
)
def test_a_healthy_mesh_has_no_findings(
    size: int, noise: float, seed: int, groups: int, *, expected: bool, missing: float
) -> None:
    """With any number of hosts and groups."""
    example = MeshExample(size, (), groups, noise, seed=seed, expected=expected, missing=missing)
    assert not find_faults(example.make())


def test_sixty_four_hosts_are_read_as_well() -> None:
    """Four thousand cells."""
    faults = (Fault(CODE.HOST_RECEIVES, "db-07"), Fault(CODE.GROUPS, "rack-1", "rack-3", 0.4))
    matrix = MeshExample(64, faults, groups=4, noise=0.05).make()
    assert fits(find_faults(matrix), faults)
    assert not find_faults(MeshExample(64, noise=0.08).make())


def test_a_pair_of_hosts_has_a_slow_path_at_most() -> None:
    """Two cells cannot tell which host it is."""
    (finding,) = find_faults(MeshExample(2, (Fault(CODE.PATH, "db-00", "db-01"),), noise=0.0).make())
    assert (finding.code, finding.sender, finding.receiver) == (CODE.PATH, "db-00", "db-01")
    assert finding.less_percent == pytest.approx(50)


def test_a_finding_says_by_how_much_its_cells_and_the_usual_cause() -> None:
    """Its cells are the host's column."""
    matrix = MeshExample(8, (Fault(CODE.HOST_RECEIVES, "db-03", None, 0.6),), noise=0.01).make()
    figures = {
        cell: replace(figure, why="receiver-core-full" if cell.receiver == "db-03" else "no-limit")
        for cell, figure in matrix.figures.items()
    }
    (finding,) = find_faults(replace(matrix, figures=figures))
    assert finding.less_percent == pytest.approx(40, abs=2)
    assert {cell.receiver for cell in finding.cells} == {"db-03"}
    assert len(finding.cells) == 7
    assert finding.why == "receiver-core-full"


def test_links_of_different_speeds_are_not_a_fault_if_rates_are_expected() -> None:
    """Two hosts have a link of a tenth."""

    def rate(sender: Host, receiver: Host) -> float:
        is_slow = {"db-02", "db-05"}.intersection((sender.name, receiver.name))
        return LINE_RATE / 10 if is_slow else LINE_RATE

    healthy = MeshExample(10, noise=0.03, rate=rate)
    assert not find_faults(healthy.make())
    faults = (Fault(CODE.HOST, "db-05", None, 0.6),)
    assert fits(find_faults(replace(healthy, faults=faults).make()), faults)
    without = find_faults(replace(healthy, expected=False).make())
    assert sorted(names(without), key=str) == [(CODE.HOST, "db-02", None), (CODE.HOST, "db-05", None)]


def test_a_cell_without_an_expected_rate_is_compared_by_its_hosts_other_cells() -> None:
    """A link of an unknown speed beside known ones."""
    matrix = MeshExample(8, (Fault(CODE.HOST, "db-03"),), noise=0.02).make()
    figures = {
        cell: replace(figure, expected_bit_s=None) if "db-03" in cell else figure
        for cell, figure in matrix.figures.items()
    }
    assert names(find_faults(replace(matrix, figures=figures))) == [(CODE.HOST, "db-03", None)]


def test_if_every_cell_is_below_the_expected_rate_that_is_the_finding() -> None:
    """The preset may be of another link; a slow host among them is still one."""
    faults = (Fault(CODE.ALL, share=0.6),)
    (finding,) = find_faults(MeshExample(8, faults, noise=0.02).make())
    assert (finding.code, round(finding.less_percent or 0)) == (CODE.ALL, 40)
    assert not find_faults(MeshExample(8, faults, noise=0.02, expected=False).make())
    found = find_faults(MeshExample(8, (*faults, Fault(CODE.HOST, "db-01", None, 0.3)), noise=0.02).make())
    assert names(found) == [(CODE.ALL, None, None), (CODE.HOST, "db-01", None)]


@pytest.mark.parametrize(
    ("hosts", "healthy"),
    [
        (8, [("db-02", "db-05")]),
        (8, [("db-02", "db-05"), ("db-07", "db-03")]),
        (12, [("db-02", "db-05"), ("db-05", "db-02")]),
        (20, [("db-02", "db-05"), ("db-05", "db-02"), ("db-11", "db-02")]),
    ],
)
def test_a_few_cells_at_the_expected_rate_are_not_the_usual_ones(hosts: int, healthy: list[Cell]) -> None:
    """The finding lists only the other cells, which are below it."""
    matrix = MeshExample(hosts, (Fault(CODE.ALL, share=0.6),), noise=0.02).make()
    figures = dict(matrix.figures) | {
        cell: replace(matrix.figures[cell], bit_s=matrix.figures[cell].expected_bit_s) for cell in healthy
    }
    (finding,) = find_faults(replace(matrix, figures=figures))
    assert (finding.code, set(figures) - set(finding.cells)) == (CODE.ALL, set(healthy))


@pytest.mark.parametrize("expected", [True, False])
def test_two_thirds_of_slow_hosts_are_named_only_if_more_is_expected(*, expected: bool) -> None:
    """Without expected rates they may be the usual ones, and the others fast."""
    hosts = [host.name for host in make_hosts(12)]
    slow = tuple(Fault(CODE.HOST, name) for name in random.Random(2).sample(hosts, 8))  # noqa: S311 - no secret
    found = find_faults(MeshExample(12, slow, noise=0.02, expected=expected).make())
    assert fits(found, slow if expected else ())


def test_two_hosts_of_one_machine_do_not_make_the_others_slow() -> None:
    """Their cells are ten times as fast."""

    def rate(sender: Host, receiver: Host) -> float:
        return LINE_RATE * (10 if {sender.name, receiver.name} == {"db-01", "db-02"} else 1)

    assert not find_faults(MeshExample(8, noise=0.02, rate=rate, expected=False).make())


def test_a_path_without_any_payload_is_a_slow_path() -> None:
    """A measured rate of 0 is a rate."""
    matrix = MeshExample(6, noise=0.02).make()
    cell = Cell("db-01", "db-04")
    figures = {**matrix.figures, cell: replace(matrix.figures[cell], bit_s=0.0)}
    (finding,) = find_faults(replace(matrix, figures=figures))
    assert (finding.code, finding.cells) == (CODE.PATH, (cell,))
    assert finding.less_percent == pytest.approx(100, abs=0.5)


def with_failures(matrix: MeshMatrix, host: str, failure: CellFailure) -> MeshMatrix:
    """Return a matrix in which no cell of a host has a result."""
    figures = {
        cell: CellFigure(cell, failure=failure) if host in cell else figure
        for cell, figure in matrix.figures.items()
    }
    return replace(matrix, figures=figures)


def test_a_host_without_results_is_down_and_says_why() -> None:
    """Its cells are not slow paths, and its peers are not down."""
    failure = CellFailure(FailureCode.HOST_LOST, "the worker has gone", "db-04")
    matrix = with_failures(MeshExample(6, (Fault(CODE.HOST, "db-01"),), noise=0.02).make(), "db-04", failure)
    down, slow = find_faults(matrix)
    assert (down.code, down.sender, down.failure) == (CODE.HOST_DOWN, "db-04", failure)
    assert len(down.cells) == 10
    assert (slow.code, slow.sender) == (CODE.HOST, "db-01")


def test_of_hosts_without_results_only_those_that_failures_name_are_down() -> None:
    """With all others down, the last one has no results either."""
    matrix = MeshExample(4).make()
    for name in ("db-00", "db-01", "db-02"):
        matrix = with_failures(matrix, name, CellFailure(FailureCode.NO_ANSWER, "no answer", name))
    assert [finding.sender for finding in find_faults(matrix)] == ["db-02", "db-01", "db-00"]


def test_a_pair_that_does_not_reach_each_other_has_no_host_to_blame() -> None:
    """Neither failure names one."""
    matrix = with_failures(MeshExample(2).make(), "db-00", CellFailure(FailureCode.UNREACHABLE, "refused"))
    assert not find_faults(matrix)


def test_a_stopped_mesh_has_no_hosts_that_are_down() -> None:
    """The user ended it before."""
    matrix = with_failures(MeshExample(4).make(), "db-00", CellFailure(FailureCode.STOPPED, "stopped"))
    assert not find_faults(matrix)


def test_a_mesh_without_figures_has_no_findings() -> None:
    """It has just begun."""
    assert find_faults(MeshMatrix("mesh-1", MeshMode.ROUNDS, make_hosts(4), {})) == ()


def measured_again(matrix: MeshMatrix, share: float, found: MeshFinding, count: int = 3) -> MeshMatrix:
    """Return a matrix with some cells of a finding measured again alone, at a share of the line rate."""
    figures = dict(matrix.figures)
    for cell in found.cells[:count]:
        figures[cell] = replace(figures[cell], isolated_bit_s=share * LINE_RATE)
    return replace(matrix, figures=figures)


def test_a_part_that_is_fast_when_measured_alone_is_a_network_without_capacity() -> None:
    """If the same cells stay slow, the path between the groups is."""
    matrix = MeshExample(12, (Fault(CODE.GROUPS, "rack-0", "rack-2"),), groups=3).make()
    (slow,) = find_faults(matrix)
    (fabric,) = find_faults(measured_again(matrix, 0.97, slow))
    assert (fabric.code, fabric.sender, fabric.receiver) == (CODE.FABRIC, "rack-0", "rack-2")
    assert set(fabric.cells) == set(slow.cells)
    assert names(find_faults(measured_again(matrix, 0.51, slow))) == [slow_name := names([slow])[0]]
    assert slow_name[0] is CODE.GROUPS


def test_if_all_cells_are_slow_only_together_the_network_lacks_capacity() -> None:
    """Every cell is below the expected rate."""
    matrix = MeshExample(8, (Fault(CODE.ALL, share=0.6),), noise=0.02).make()
    (found,) = find_faults(matrix)
    assert names(find_faults(measured_again(matrix, 0.98, found))) == [(CODE.FABRIC, None, None)]


def test_a_path_that_is_fast_when_measured_again_was_slow_by_chance() -> None:
    """Many such paths are a network without capacity: they collide on its links."""
    one = MeshExample(8, (Fault(CODE.PATH, "db-01", "db-06"),)).make()
    assert not find_faults(measured_again(one, 1.0, find_faults(one)[0]))
    paths = tuple(Fault(CODE.PATH, f"db-0{place}", f"db-0{(3 * place + 1) % 8}") for place in (0, 1, 2, 4, 5))
    many = MeshExample(8, paths).make()
    found = find_faults(many)
    assert fits(found, paths)
    for finding in found[:3]:
        many = measured_again(many, 1.0, finding)
    (fabric,) = find_faults(many)
    assert (fabric.code, len(fabric.cells)) == (CODE.FABRIC, 5)


@given(
    again=st.sampled_from([0.4, 0.5, 0.65, 0.75]),
    share=st.sampled_from([0.25, 0.4, 0.6]),
    hosts=st.sampled_from([6, 8, 12]),
)
def test_a_path_that_loses_packets_stays_one_when_it_is_less_slow_alone(
    hosts: int, share: float, again: float
) -> None:
    """With random loss the rate of one path may double from one test to the next: 37, then 62 Mb/s of 95."""
    matrix = MeshExample(hosts, (Fault(CODE.PATH, "db-01", "db-04", share),)).make()
    (slow,) = find_faults(matrix)
    assert names(find_faults(measured_again(matrix, again, slow))) == [(CODE.PATH, "db-01", "db-04")]


def test_a_mesh_of_single_pairs_says_nothing_about_capacity() -> None:
    """Nothing else loaded the network."""
    matrix = MeshExample(12, (Fault(CODE.GROUPS, "rack-0", "rack-2"),), groups=3, mode=MeshMode.ISOLATED).make()
    (slow,) = find_faults(matrix)
    assert names(find_faults(measured_again(matrix, 0.97, slow))) == names([slow])


SHARED = [(6, 2), (8, 2), (12, 2), (12, 3), (16, 4)]


@pytest.mark.parametrize(("hosts", "groups"), SHARED)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_slow_joint_is_named_once_however_many_pairs_share_it_at_a_time(
    hosts: int, groups: int, share: float
) -> None:
    """One direction between two groups, every direction, and the uplink of a group."""
    one = find_faults(SharedJoint(hosts, groups, {("rack-0", "rack-1"): share}).make_again())
    assert names(one) == [(CODE.GROUPS, "rack-0", "rack-1")]
    assert one[0].less_percent == pytest.approx(100 * (1 - share), abs=6)
    every = find_faults(SharedJoint(hosts, groups, both_ways(groups, share)).make_again())
    assert {finding.code for finding in every} == {CODE.GROUPS}
    assert len(every) == (1 if groups > 2 else 2)
    uplink = SharedJoint(hosts, groups, {("rack-0", ""): share, ("", "rack-0"): share}, noise=0.04)
    found = names(find_faults(uplink.make_again()))
    out, back = (None, None) if groups > 2 else ("rack-1", "rack-1")
    assert sorted(found, key=str) == sorted([(CODE.GROUPS, "rack-0", out), (CODE.GROUPS, back, "rack-0")], key=str)


@pytest.mark.parametrize("skew", [0.4, 0.7])
@pytest.mark.parametrize(("hosts", "groups"), [(8, 2), (12, 2), (12, 3)])
def test_pairs_that_share_a_slow_joint_unequally_are_neither_paths_nor_a_lack_of_capacity(
    hosts: int, groups: int, skew: float
) -> None:
    """One of four had half of its fair share."""
    for seed in range(1, 9):
        joint = SharedJoint(hosts, groups, both_ways(groups, 0.5), skew=skew, seed=seed)
        found = find_faults(joint.make_again())
        assert {finding.code for finding in found} == {CODE.GROUPS}, (seed, names(found))


@pytest.mark.parametrize(("hosts", "groups"), SHARED)
@pytest.mark.parametrize("share", [1.2, 1.5, 2.5])
def test_a_joint_that_is_short_only_for_several_pairs_is_a_network_without_capacity(
    hosts: int, groups: int, share: float
) -> None:
    """No host and no path is slow. If few pairs ever met on it, there is nothing to see."""
    found = find_faults(SharedJoint(hosts, groups, both_ways(groups, share), slip=0.2).make_again())
    assert {finding.code for finding in found} <= {CODE.FABRIC}
    assert len(found) <= 1

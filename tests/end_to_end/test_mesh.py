"""A whole mesh over emulated hosts: a Dask worker on each, all pairs measured, the slow one named.

`stress/mesh_faults.py` has more hosts and more faults.
"""

import pytest
from linkgauge.engine.model.errors import LabUnavailable

from .mesh_cases import FULL_BIT_S, Fault, draw_case, run_case


@pytest.mark.every
@pytest.mark.alone
@pytest.mark.timeout(240)
def test_a_host_whose_link_is_half_as_fast_is_named_and_nothing_else() -> None:
    """Four hosts in two racks at 100 Mb/s: what it sends and receives has half the rate, all others have all."""
    case = draw_case(Fault.HOST, 4, seed=1)
    try:
        outcome = run_case(case, seconds=1, seed=1)
    except LabUnavailable as error:
        pytest.skip(str(error))
    rates = outcome.rates()
    assert not case.problems(outcome), rates
    for cell, bit_s in rates.items():
        whole = FULL_BIT_S / 2 if set(cell) & set(case.slow) else FULL_BIT_S
        assert bit_s == pytest.approx(whole, rel=0.08), cell

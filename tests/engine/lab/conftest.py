"""A lab for the tests of a module."""

from collections.abc import Iterator

import pytest
from linkgauge.engine.lab.link_lab import Lab, open_lab
from linkgauge.engine.model.errors import LabUnavailable

from .labs import LINK


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Give a lab; skip with the reason if there can be none."""
    try:
        with open_lab(LINK) as built:
            yield built
    except LabUnavailable as error:
        pytest.skip(str(error))

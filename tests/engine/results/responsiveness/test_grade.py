"""The grade of latency under load."""

import pytest
from linkgauge.engine.results.responsiveness.grade import GRADES, Grade, grade_of, is_worse

MS = 1_000_000


@pytest.mark.parametrize(
    ("rise_ms", "grade"),
    [
        *((0.0, "A+"), (4.999, "A+"), (5.0, "A"), (29.999, "A"), (30.0, "B"), (59.999, "B")),
        *((60.0, "C"), (199.999, "C"), (200.0, "D"), (399.999, "D"), (400.0, "F"), (9_000.0, "F")),
    ],
)
def test_each_limit_belongs_to_the_grade_below(rise_ms: float, grade: Grade) -> None:
    """The limits of dslreports.com/faq/17930."""
    assert grade_of(rise_ms * MS) == grade


def test_a_grade_is_worse_than_those_before_it() -> None:
    """But not than itself."""
    for place, grade in enumerate(GRADES):
        assert [is_worse(grade, other) for other in GRADES] == [other < place for other in range(len(GRADES))]

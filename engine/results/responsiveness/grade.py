"""The grade of latency under load, from A+ to F.

Pure. It is the scale of DSLReports (dslreports.com/faq/17930): the mean of the rises while downloading and while
uploading, against fixed limits. A path that is slow when idle is not judged.
"""

from typing import Final, Literal

Grade = Literal["A+", "A", "B", "C", "D", "F"]
GRADES: Final[tuple[Grade, ...]] = ("A+", "A", "B", "C", "D", "F")
GRADE_SCALE: Final = "dslreports"
"""The name of the scale in a run's document."""
_MILLISECOND_NS: Final = 1_000_000
GRADE_LIMITS_MS: Final[tuple[tuple[Grade, int], ...]] = (("A+", 5), ("A", 30), ("B", 60), ("C", 200), ("D", 400))
"""The grades with the mean rise below which each is given; the last one is for all higher rises."""


def grade_of(rise_ns: float) -> Grade:
    """Return the grade of a mean rise."""
    for grade, limit_ms in GRADE_LIMITS_MS:
        if rise_ns < limit_ms * _MILLISECOND_NS:
            return grade
    return "F"


def is_worse(grade: Grade, than: Grade) -> bool:
    """Return whether a grade is worse than another one."""
    return GRADES.index(grade) > GRADES.index(than)

"""Any JSON value, and numbers that JSON lacks."""

from hypothesis import strategies as st

FINITE_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
JSON = FINITE_JSON | st.floats()

"""How Hypothesis makes the types that it does not know, and how it runs: no deadlines, nothing that needs luck."""

from hypothesis import settings
from hypothesis import strategies as st
from msgspec import Raw

st.register_type_strategy(Raw, st.sampled_from([Raw(b"null"), Raw(b"1"), Raw(b'{"a":[1,2]}'), Raw(b'"text"')]))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))  # JSON has no others

# `make test` tries the same examples each time: whether main passes is no matter of luck. `make search` tries new ones,
# many more; what it finds becomes a case with a name.
settings.register_profile("forge", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile("forge")

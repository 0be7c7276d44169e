"""The core: pure functions from state to state. One turn is the composition of these seven, in this order.

compact → fold → serialize → send → validate → enforce → execute
"""

from stages.compact import compact
from stages.enforce import enforce
from stages.execute import execute
from stages.fold import fold
from stages.pipeline import Stage, on, pipeline
from stages.send import send
from stages.serialize import serialize
from stages.validate import validate

__all__ = ["Stage", "compact", "enforce", "execute", "fold", "on", "pipeline", "send", "serialize", "validate"]

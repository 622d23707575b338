"""Engines of the asv suites: those that are not available are left out."""

from skts.engines import get_engine
from skts.exceptions import EngineNotAvailableError

ENGINES = ["numba", "cupy"]


def skip_unless_available(engine):
    """Leave a benchmark out in asv's way: a NotImplementedError from `setup`."""
    try:
        get_engine(engine)
    except EngineNotAvailableError as error:
        raise NotImplementedError from error

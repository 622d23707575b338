"""``python -m skts.warm_up``: compile the kernels of estimators ahead; see `skts.warm_up`."""

from __future__ import annotations

import argparse
import sys
import time

from skts._warm_up import all_estimators, warm_up


def main() -> None:
    """Read the command line, compile, and say how long it took."""
    parser = argparse.ArgumentParser(prog="python -m skts.warm_up", description=__doc__)
    parser.add_argument("--engine", help="numba, cupy, ...; all that can run here by default")
    known = {kind.__name__: kind for kind in all_estimators()}
    parser.add_argument(
        "--estimators", nargs="+", choices=known, default=list(known), metavar="NAME",
        help=f"of {', '.join(known)}; all by default",
    )  # fmt: skip
    options = parser.parse_args()
    begin = time.perf_counter()
    warm_up(options.engine, [known[name] for name in options.estimators])
    print(f"ready after {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
else:
    # whoever imports this module gets the function, which has its name in the package
    sys.modules[__name__] = warm_up  # type: ignore[assignment]

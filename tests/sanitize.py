"""Run tests on a GPU under NVIDIA's compute-sanitizer: ``make sanitize``.

Each tool runs the small works of ``tests/engines/test_every_kernel.py``, or the tests that are
named, in a process of its own. Arrays get memory of their own, not of CuPy's pool, so that what
lies beside them is nobody's. What the tools say of kernels of CuPy and of CUDA's libraries is
counted, and does not fail the run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from skts.engines.cupy.programs import all_kernels

__all__ = ["findings"]

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TESTS = ("tests/engines/test_every_kernel.py",)
#: The first line of what a tool says of one access or call, without the mark of all lines.
FIRST = re.compile(
    r"^(?:Invalid|Misaligned|Uninitialized|Error: Race|Warning: Race|Barrier error|"
    r"Program hit|Potential|Divergent|Unused|Leaked|Internal)"
)
FUNCTIONS = re.compile(
    r"\bat (?:void )?(?:"
    + "|".join(
        sorted({re.sub("<.*", "", name) for names in all_kernels().values() for name in names})
    )
    + r")\b"
)


def findings(log: str) -> tuple[Counter[str], int]:
    """Read what a tool wrote.

    Parameters
    ----------
    log : str
        Its output.

    Returns
    -------
    ours : Counter
        What it says of kernels of this package, and where.
    others : int
        How much it says of other kernels.
    """
    ours: Counter[str] = Counter()
    others = 0
    for part in re.split(r"^=========\s*$", log, flags=re.MULTILINE):
        lines = [line.removeprefix("=========").strip() for line in part.splitlines()]
        lines = [line for line in lines if line]
        begin = next((i for i, line in enumerate(lines) if FIRST.match(line)), None)
        if begin is None:
            continue
        kernel = next((line for line in lines[begin:] if FUNCTIONS.search(line)), None)
        if kernel is None:
            others += 1
        else:
            place = re.sub(r"\+0x[0-9a-f]+", "", kernel)
            ours[lines[begin] if place == lines[begin] else f"{lines[begin]} {place}"] += 1
    return ours, others


def run(tool: str, tests: list[str]) -> bool:
    """Run tests under a tool; whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        done = subprocess.run(
            [
                *("compute-sanitizer", "--tool", tool, "--log-file", str(log)),
                *("--print-limit", "1000", "--target-processes", "all"),
                *(sys.executable, __file__, "--inside", *tests),
            ],
            check=False,
        )
        text = log.read_text(errors="replace") if log.exists() else ""
    ours, others = findings(text)
    for what, count in ours.most_common():
        print(f"{tool}: {count} x {what}")
    print(f"{tool}: {ours.total()} findings, and {others} in kernels of others", flush=True)
    if not re.search("ERROR SUMMARY|RACECHECK SUMMARY", text):
        print(f"{tool} did not come to its end:\n{text[-2000:]}")
        return False
    return done.returncode == 0 and not ours


def inside(tests: list[str]) -> int:
    """Run tests; the process of a tool does this."""
    import cupy
    import pytest

    cupy.cuda.set_allocator(None)
    # kernels are slower by orders of magnitude
    return int(pytest.main(["-q", "-m", "gpu", "--timeout=0", "-p", "no:cacheprovider", *tests]))


def main() -> int:
    """Run all tools, or those that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tool", nargs="+", choices=TOOLS, default=TOOLS, help="after the tests")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options, tests = parser.parse_known_args()
    tests = tests or list(TESTS)
    if options.inside:
        return inside(tests)
    done = [run(tool, tests) for tool in options.tool]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())

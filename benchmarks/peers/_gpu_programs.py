"""Programs of other authors for one GPU, behind small drivers: how they are compiled and run.

Their sources are folders of whoever compiles; the drivers, `drivers/*`, are ours, and include or
link what is there. A driver takes arrays as files, prints a line of a name and seconds for each
way in which it did the work, and leaves the results in files.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DRIVERS = Path(__file__).with_name("drivers")
#: What is compiled, from where, and for which device: a file beside the programs.
FACTS = "programs.json"
#: Of the build files of SCAMP, for release; "native" there, but programs may run elsewhere.
HOST_OPTIONS = "-O3,-march=x86-64-v3,-funroll-loops,-ffp-contract=fast"
#: Errors that SCAMP names and cuFFT no longer does, with the numbers that they had.
CUFFT_ERRORS = {
    "CUFFT_INCOMPLETE_PARAMETER_LIST": 10,
    "CUFFT_PARSE_ERROR": 12,
    "CUFFT_LICENSE_ERROR": 15,
}


class ProgramError(Exception):
    """A program could not be compiled, or failed."""


class Program(NamedTuple):
    """A program: its driver, and the folder to include and the files to compile of the source."""

    title: str
    driver: str
    include: str
    files: tuple[str, ...] = ()
    cufft: bool = False
    options: tuple[str, ...] = ()


PROGRAMS = {
    "scamp": Program(
        "SCAMP",
        "scamp.cpp",
        "src",
        ("src/core/*.cpp", "src/core/*.cu", "src/common/*.cpp"),
        cufft=True,
        options=("-D_HAS_CUDA_", "-DNDEBUG"),
    ),
    "cudtw": Program("cuDTW++", "cudtw.cu", "src"),
}


def cuda_folders():
    """Folders that may hold parts of CUDA: of variables, the toolkit and Python packages."""
    named = [os.environ.get(name) for name in ("SKTS_CUFFT", "CUDA_PATH", "CUDA_HOME")]
    found = [Path(folder) for folder in named if folder]
    if compiler := shutil.which("nvcc"):
        found.append(Path(compiler).resolve().parents[1])
    found.append(Path("/usr/local/cuda"))
    package = importlib.util.find_spec("nvidia")
    for folder in package.submodule_search_locations if package else ():
        found += sorted(Path(folder).iterdir())
    return [folder for folder in found if folder.is_dir()]


def cufft():
    """The folder of headers and the file of cuFFT's library."""
    for folder in cuda_folders():
        libraries = [
            file for part in ("lib64", "lib") for file in folder.glob(f"{part}/libcufft.so*")
        ]
        if libraries and (folder / "include" / "cufft.h").exists():
            return folder / "include", libraries[0]
    raise ProgramError(
        "cuFFT's header and library were not found: install the package nvidia-cufft, or name a "
        "folder that has include/cufft.h and lib/libcufft.so in SKTS_CUFFT"
    )


def compilation(name, source, target, arch):
    """The command that compiles a program.

    Parameters
    ----------
    name : str
        One of `PROGRAMS`.
    source : path
        The folder of its authors' sources.
    target : path
        The program to make.
    arch : str
        Compute capability without the point, such as "90".
    """
    program, source = PROGRAMS[name], Path(source)
    command = ["nvcc", "-O3", "-std=c++17", f"-arch=sm_{arch}", "-cudart", "static", "-w"]
    command += ["-Xcompiler", f"{HOST_OPTIONS},-static-libstdc++,-static-libgcc"]
    command += [*program.options, "-I", str(source / program.include)]
    files = [file for pattern in program.files for file in sorted(source.glob(pattern))]
    if program.files and not files:
        raise ProgramError(f"no sources of {program.title} in {source}")
    libraries = []
    if program.cufft:
        include, library = cufft()
        header = (include / "cufft.h").read_text()
        command += ["-I", str(include)]
        command += [f"-D{key}={n}" for key, n in CUFFT_ERRORS.items() if key not in header]
        libraries = ["-Xlinker", str(library)]
    return [*command, *map(str, [DRIVERS / program.driver, *files]), *libraries, "-o", str(target)]


def compile_program(name, source, folder, arch):
    """Compile a program into a folder, and write there what it was made of."""
    folder.mkdir(parents=True, exist_ok=True)
    _run(compilation(name, source, folder / name, arch))
    made_of = {"commit": _commit(source), "compiler": _run(["nvcc", "--version"]).split()[-1]}
    facts = read_facts(folder) | {name: made_of | {"arch": f"sm_{arch}"}}
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")


def read_facts(folder):
    """What the programs of a folder were made of."""
    file = folder / FACTS
    return json.loads(file.read_text()) if file.exists() else {}


def run_program(program, arguments):
    """Run a driver: for each way in which it did the work, the seconds of each time.

    Raises
    ------
    ProgramError
        With what the driver says.
    """
    libraries = [folder / part for folder in cuda_folders() for part in ("lib64", "lib")]
    known = [str(folder) for folder in libraries if any(folder.glob("libcufft.so*"))]
    known += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    variables = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(known)}
    if not os.access(program, os.X_OK):
        program.chmod(0o755)  # a copy may have lost it
    return parse(_run([str(program), *map(str, arguments)], variables))


def parse(text):
    """The lines of a driver as a dictionary: name, and seconds of each run."""
    lines = [line.split() for line in text.splitlines()]
    return {name: [float(one) for one in seconds] for name, *seconds in filter(None, lines)}


def _run(command, variables=None):
    """The output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise ProgramError(f"{Path(command[0]).name} failed ({done.returncode}):\n{tail}")
    sys.stderr.write(done.stderr)
    return done.stdout


def _commit(source):
    """The commit of a checkout; None of a folder that is none."""
    command = ["git", "-C", str(source), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None

"""Print the public names of a package, where it is installed: ``names.py aeon > aeon.txt``."""

import ast
import re
import sys
from pathlib import Path

#: Constants, private names, errors, base classes.
HELPER = re.compile(r"^_|^[A-Z_]+$|Error$|Mixin$")


def of_stumpy():
    import stumpy

    gpu = {name for name in dir(stumpy) if name.startswith("gpu_")}
    return {*stumpy.__all__, *gpu}


def of_aeon():
    import aeon.distances
    from aeon.utils.discovery import all_estimators

    names = set(aeon.distances.__all__)
    for name, cls in all_estimators():
        modules = [part for part in cls.__module__.split(".")[:3] if not part.startswith("_")]
        names.add(".".join([*modules, name]))
    return names


def of_tslearn():
    """Read ``__all__`` from the source, as some modules import only beside Keras or h5py."""
    import tslearn

    names = set()
    for path in Path(tslearn.__file__).parent.iterdir():
        if path.stem in {"__init__", "backend", "bases"}:  # folders; for those who extend it
            continue
        source = path / "__init__.py" if path.is_dir() else path
        if source.suffix != ".py" or not source.exists():
            continue
        for line in ast.parse(source.read_text()).body:
            if isinstance(line, ast.Assign) and line.targets[0].id == "__all__":
                public = ast.literal_eval(line.value)
                names |= {f"{path.stem}.{name}" for name in public if not HELPER.search(name)}
    return names


KINDS = {"stumpy": of_stumpy, "aeon": of_aeon, "tslearn": of_tslearn}
print("\n".join(sorted(KINDS[sys.argv[1]]())))

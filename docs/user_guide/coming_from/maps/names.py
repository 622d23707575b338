"""Print the public names of a package, where it is installed: ``names.py aeon > aeon.txt``."""

import sys


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


print("\n".join(sorted({"stumpy": of_stumpy, "aeon": of_aeon}[sys.argv[1]]())))

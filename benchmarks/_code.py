"""Which code a record measured, and whether it is the same now.

Files are compared as code: Python without docstrings, comments and formatting, and without
statements that refuse arguments at a glance, which were not refused where there is a record; CUDA
without comments and blank lines. Functions and imported names that a Python file has more than
before change nothing by themselves: where one is used, that has changed, too. A record measured
what its scripts import, followed by name from file to file, and of an engine the folders of those
families whose reductions are among that. Where this is not known, as of programs that start others,
the folders of its families belong to it, and every estimator that builds on them; of a record of no
family, all of the package. Displays and readers of files belong to none.
"""

import ast
import builtins
import hashlib
import os
import re
import subprocess
import warnings
from functools import cache
from pathlib import Path

KINDS = (".py", ".cu", ".cuh")
#: All that a record's digests may be of, and the scripts that measured.
FOLDERS = ("skts", "benchmarks")
KERNELS = "skts/engines/cupy/"
ENGINES = ("numba", "cupy")
#: What no record runs: plain loops, which check answers where a user asks for it; displays; readers
#: of files.
NOT_RUN = ("skts/engines/host/plain.py", "skts/plotting/", "skts/datasets/_readers.py")
#: Where any reduction is run from.
EXECUTOR = "skts/engines/core/executor.py"
_OF_A_FAMILY = re.compile(rf"skts/engines/(families|{'|'.join(ENGINES)})/(\w+)/")
#: Scripts that run others, or import them by names that they make.
_STARTS_OTHERS = re.compile(rb"import_module\(|sys\.executable|_worker\.py")
#: A reduction names the method of an engine that computes it.
_REDUCTION = re.compile(rb"^    method\b.*= \"", re.MULTILINE)
#: Comments of C++, and what is no comment: a string and a character. A comment of a line goes on in
#: the next one after a backslash.
_CUDA = re.compile(
    r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.DOTALL
)

#: Contents of blobs that were read, by their names.
_contents = {}
#: The working tree that was looked at last.
_here = {}


def name_of_blob(content):
    """The name that git gives a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@cache
def _blob_here(path, size, changed):
    """The blob of a file, which is read again when it has changed."""
    content = Path(path).read_bytes()
    blob = name_of_blob(content)
    _contents[blob] = content
    return blob


class Sources:
    """Sources of a working tree or a commit.

    Parameters
    ----------
    blobs : dict of str
        Names of contents by path.
    root : path or None
        The repository that knows contents not yet read.
    """

    def __init__(self, blobs, root=None):
        self.blobs, self.root = blobs, root
        self._targets = {}

    @classmethod
    def here(cls, root):
        """Those of a working tree."""
        blobs = {}
        for top in FOLDERS:
            for folder, below, names in os.walk(root / top):
                below[:] = [name for name in below if name != "__pycache__"]
                for name in names:
                    if name.endswith(KINDS):
                        path = os.path.join(folder, name)
                        found = os.stat(path)
                        blob = _blob_here(path, found.st_size, found.st_mtime_ns)
                        blobs[Path(path).relative_to(root).as_posix()] = blob
        if blobs != _here.get("blobs"):
            _here.update(blobs=blobs, sources=cls(blobs))
        return _here["sources"]

    def content(self, path):
        """What is in a file."""
        blob = self.blobs[path]
        if blob not in _contents:
            _read(self.root, {each for each in self.blobs.values() if each not in _contents})
        return _contents[blob]

    def code(self, path):
        """The code in a file."""
        blob = self.blobs[path]
        self.content(path)
        return _code(blob, path.endswith(".py"))

    def differs(self, path, then):
        """Whether a file has other code than then."""
        if self.blobs[path] == then.blobs[path] or self.code(path) == then.code(path):
            return False
        contents = self.content(path), then.content(path)
        return not (path.endswith(".py") and only_adds_names(*contents))

    def below(self, folder):
        """Files of a folder."""
        return [path for path in self.blobs if path.startswith(folder + "/")]

    def digest(self, folder):
        """As `_records.digest` of a folder; None where there is none."""
        found = hashlib.sha256()
        paths = sorted(self.below(folder), key=Path)
        for path in paths:
            found.update(path[len(folder) + 1 :].encode() + b"\0" + self.content(path))
        return found.hexdigest()[:16] if paths else None

    def file(self, parts):
        """The file of a module; None where it is none of these."""
        path = "/".join(parts)
        found = (each for each in (f"{path}.py", f"{path}/__init__.py") if each in self.blobs)
        return next(found, None)

    def find(self, parts, name, seen=frozenset()):
        """The file in which a name of a module is defined, or the module's; None without one.

        Parameters
        ----------
        parts : tuple of str
            The module.
        name : str or None
            None for the module as such.
        seen : frozenset
            Of which name that is imported it was asked.
        """
        path = self.file(parts)
        if name is None:
            return path
        submodule = self.file((*parts, name))
        if submodule is not None or path is None:
            return submodule
        if path.endswith("__init__.py") and (path, name) not in seen:
            for module, imported, known_as in self.imports(path):
                if known_as == name and imported is not None:
                    found = self.find(module, imported, seen | {(path, name)})
                    if found is not None:
                        return found
        return path

    def imports(self, path):
        """All that a Python file imports: a module, a name of it or None, and its name there."""
        self.content(path)
        folder = tuple(path.split("/")[:-1])
        for level, module, name, known_as in _imports(self.blobs[path]):
            base = folder[: len(folder) - level + 1] if level else ()
            yield (*base, *module), name, known_as

    def targets(self, path):
        """Files of which a file makes use."""
        if path not in self._targets:
            self._targets[path] = self._find_targets(path)
        return self._targets[path]

    def _find_targets(self, path):
        found = set()
        if path.endswith(".py"):
            found |= {self.find(module, name) for module, name, _ in self.imports(path)}
            words = re.findall(r'"([\w/]+\.cuh?)"', self.content(path).decode())
        else:
            words = re.findall(r'#include "(.+)"', self.content(path).decode())
        found |= {KERNELS + word for word in words}
        return {each for each in found if each in self.blobs and not each.startswith(NOT_RUN)}


@cache
def at(root, commit):
    """Sources of a commit; None where git does not know it."""
    command = ["git", "-C", root, "ls-tree", "-r", "-z", f"{commit}^{{commit}}", "--", *FOLDERS]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = [line.partition("\t") for line in listed.split("\0") if line]
    return Sources({path: kind.split()[2] for kind, _, path in lines if path.endswith(KINDS)}, root)


def _read(root, blobs):
    """Read contents, all at once."""
    names = "".join(f"{blob}\n" for blob in blobs).encode()
    command = ["git", "-C", root, "cat-file", "--batch"]
    answer = subprocess.run(command, input=names, check=True, capture_output=True).stdout
    start = 0
    while start < len(answer):
        end = answer.index(b"\n", start)
        blob, _, size = answer[start:end].decode().split()
        _contents[blob] = answer[end + 1 : end + 1 + int(size)]
        start = end + int(size) + 2


def _parse(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@cache
def _code(blob, python):
    """A content as code."""
    if not python:
        return code_of_cuda(_contents[blob].decode())
    return code_of_python(_contents[blob])


def _refuses(node):
    """Whether a statement does nothing but raise where an argument is not as it has to be.

    The condition takes no time that counts: it calls nothing but functions of Python itself, and so
    no pass over series. A name that it makes may be used later.
    """
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.body[-1], ast.Raise):
        return False
    parts = list(ast.walk(node.test))
    calls = [each.func for each in parts if isinstance(each, ast.Call)]
    brief = all(isinstance(each, ast.Name) and hasattr(builtins, each.id) for each in calls)
    return brief and not any(isinstance(each, ast.NamedExpr) for each in parts)


def _parse_code(text):
    """The tree of Python without docstrings, and without what refuses something."""
    tree = _parse(text)
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            if isinstance(statements := getattr(node, block, None), list):
                setattr(node, block, [each for each in statements if not _refuses(each)])
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest
    return tree


def code_of_python(text):
    """Python without docstrings, comments and formatting."""
    return ast.dump(_parse_code(text))


def only_adds_names(text, before):
    """Whether Python is what it was before, but for functions and imports of which nothing knew.

    Such a function may not be decorated, since what decorates it may list it somewhere, nor have a
    name that Python itself looks for.
    """
    old, new = _parse_code(before), _parse_code(text)
    nodes = list(ast.walk(old))
    known = {node.id for node in nodes if isinstance(node, ast.Name)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}

    def is_new(node):
        is_function = isinstance(node, ast.FunctionDef) and not node.decorator_list
        return is_function and node.name not in known and not node.name.startswith("__")

    def is_listing(node):
        return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"

    loaded = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    for tree in (old, new):
        for node in tree.body:
            # a file of the package that was not used before counts by itself
            if isinstance(node, ast.ImportFrom) and (node.level or node.module in loaded):
                node.names = [each for each in node.names if (each.asname or each.name) in known]
        tree.body = [node for node in tree.body if getattr(node, "names", True)]
        tree.body = [node for node in tree.body if not is_listing(node) and not is_new(node)]
    return ast.dump(old) == ast.dump(new)


def code_of_cuda(text):
    """CUDA without comments, blank lines, and spaces at the ends of lines."""
    if 'R"' not in text:
        text = _CUDA.sub(lambda found: found[1] or " ", text)
    lines = []
    for line in text.splitlines():
        # a line that goes on ends with the next, blank or not
        if line.strip() or (lines and lines[-1].endswith("\\")):
            lines.append(line.strip())
    return "\n".join(lines)


@cache
def _imports(blob):
    """What a file imports: how many folders up, a module, a name of it or None, its name there."""
    found = []
    waiting = _parse(_contents[blob]).body
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            for each in node.names:
                found.append((node.level, module, each.name, each.asname or each.name))
        elif isinstance(node, ast.Import):
            for each in node.names:
                # all of it, and of the package in which it lies
                module = tuple(each.name.split("."))
                found += [(0, module, None, each.asname), (0, module[:1], None, module[0])]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting = waiting + node.orelse  # types are not run
        else:
            # statements have statements in them, and handlers and cases, which have them too
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting = waiting + getattr(node, block, [])
    return tuple(found)


def _family(path):
    found = _OF_A_FAMILY.match(path)
    return found and found[2]


class Measured:
    """Files of sources that a record measured.

    Parameters
    ----------
    sources : Sources
    engines : set of str
    """

    def __init__(self, sources, engines):
        self.sources, self.engines = sources, engines
        self.families, self.paths = set(), set()
        self._follow({EXECUTOR, *(f"skts/engines/{engine}/__init__.py" for engine in engines)})

    def add(self, paths):
        """Add files, with all that they use, and the families whose reductions are among that."""
        self._follow(paths, any_family=True)

    def add_folders(self, folders):
        """Add folders of families, and all that builds on these."""
        inside = {path for folder in folders for path in self.sources.below(folder)}
        inside = {path for path in inside if not path.startswith(NOT_RUN)}
        self._follow(inside, any_family=True)
        # those that hand names on are followed by name
        above = [
            path
            for path in self.sources.below("skts")
            if not path.startswith(("skts/engines/", *NOT_RUN))
            and not path.endswith("/__init__.py")
        ]
        found, grown = set(), {path for path in inside if _family(path)}
        while grown:
            grown = {
                path
                for path in above
                if path not in found and self.sources.targets(path) & (inside | found)
            }
            found |= grown
        self._follow(found)

    def _follow(self, paths, any_family=False):
        """Add files and what they use; of other families only with `any_family`."""
        waiting = list(paths & self.sources.blobs.keys())
        while waiting:
            path = waiting.pop()
            if path in self.paths:
                continue
            self.paths.add(path)
            family = _family(path)
            if family and family not in self.families and self._is_reduction(path):
                self.families.add(family)
                for layer in ("families", *self.engines):
                    waiting += self.sources.below(f"skts/engines/{layer}/{family}")
            # what all families share knows some of each
            shared = path.startswith("skts/engines/") and path != "skts/engines/__init__.py"
            follow_all = family or (any_family and not shared)
            for target in self.sources.targets(path):
                if follow_all or _family(target) in (None, *self.families):
                    waiting.append(target)

    def _is_reduction(self, path):
        return "/families/" in path and _REDUCTION.search(self.sources.content(path))


def scripts_of(record, sources):
    """Files that a record's commands run; None where one is not there."""
    modules = re.findall(r"-m (benchmarks[.\w]*)", record.get("command", ""))
    found = set()
    for module in modules:
        parts = tuple(module.split("."))
        found.add(sources.file((*parts, "__main__")) or sources.file(parts))
    return None if None in found else found


def measured(record, sources, scripts):
    """What of sources a record measured.

    Parameters
    ----------
    record : dict
    sources : Sources
    scripts : Sources
        Those of its commit, of which its scripts are taken.

    Returns
    -------
    set of str
        Paths.
    """
    found = Measured(sources, _engines(record))
    waiting, seen, starts_others = scripts_of(record, scripts), set(), False
    if waiting:
        starts_others = any(_STARTS_OTHERS.search(scripts.content(path)) for path in waiting)
    while waiting:
        path = waiting.pop()
        seen.add(path)
        for module, name, _ in scripts.imports(path):
            if module[0] == "benchmarks":
                waiting |= {scripts.find(module, name)} - seen - {None}
            elif module[0] == "skts":
                found.add({sources.find(module, name)})
    if starts_others or not found.families:
        found.add_folders(_folders(record, sources))
    return found.paths


def _folders(record, sources):
    """Folders that a record names: those of its families, or all where it is of no family.

    Beside them it names the package, for its commit to be told.
    """
    named = record["sources"].keys() - {"skts"}
    parts = (path.split("/") for path in sources.below("skts/engines/families"))
    families = {"/".join(each[:4]) for each in parts if len(each) > 4}
    return record["sources"].keys() if families <= named else named


def changes(record, root):
    """What of the code that a record measured is not now what it was.

    Parameters
    ----------
    record : dict
    root : path
        The repository.

    Yields
    ------
    str
        A path, or why it is not known.
    """
    here = Sources.here(root)
    commits = [record.get("commit"), *re.findall(r"--commit (\w+)", record.get("command", ""))]
    for commit in dict.fromkeys(commits):
        then = at(root, commit)
        if then is None:
            yield f"commit {commit}, which is not known"
            continue
        yield from _differences(record, then, here)
        if commit == commits[0]:
            for folder, known in record["sources"].items():
                if then.digest(folder) != known:
                    yield f"{folder}, which was not that of commit {commit}"


def _differences(record, then, here):
    """Paths of what a record measured that one of two trees alone has, or with other code."""
    suspects = {path for path, _ in then.blobs.items() ^ here.blobs.items()}
    suspects = {path for path in suspects if path.startswith("skts/")}
    if not suspects:
        return
    told = set()
    # what all records measured is looked at first: most commits differ there
    for find in (_shared, measured):
        found = [find(record, sources, then) for sources in (then, here)]
        for path in sorted((found[0] | found[1]) - told):
            told.add(path)
            in_both = path in found[0] and path in found[1]
            if not in_both or (path in suspects and here.differs(path, then)):
                yield path


def _engines(record):
    folders = record["sources"]
    return {name for name in ENGINES if any(f"/{name}/" in path for path in folders)} or {*ENGINES}


def _shared(record, sources, scripts):
    """As `measured`, of that what is neither of a family nor of the estimators."""
    return Measured(sources, _engines(record)).paths

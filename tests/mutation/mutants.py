"""Mutants: every single change of an operator, constant, comparison, index or statement."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "cuda_functions", "draw", "draw_from_each", "mutants_of"]

BINARY = {
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "//": ["*"],
    "%": ["*"],
    "**": ["*"],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|"],
    "|": ["&"],
    "^": ["|"],
}
COMPARISONS = {
    "<": ["<=", ">"],
    "<=": ["<", ">="],
    ">": [">=", "<"],
    ">=": [">", "<="],
    "==": ["!="],
    "!=": ["=="],
    "is": ["is not"],
    "is not": ["is"],
    "in": ["not in"],
    "not in": ["in"],
}
#: Functions and methods that have an opposite.
OPPOSITES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
    "zeros": "ones",
    "ones": "zeros",
    "isfinite": "isnan",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
}
STRINGS = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    module : str
        The file, from the root of the repository.
    function : str
        Qualified name of the function around the change; empty at the level of the module.
    line : int
        The line on which it begins.
    text : str
        That line, without its indentation.
    start, stop : int
        What is replaced, in characters of the file.
    before, after : str
        The text there, and what it becomes.
    number : int
        Counts equal changes of equal lines.
    """

    module: str
    function: str
    line: int
    text: str
    start: int
    stop: int
    before: str
    after: str
    number: int = 0

    @property
    def key(self) -> str:
        """A name that does not change when lines move."""
        parts = (self.module, self.text, self.before, self.after, str(self.number))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def apply(self, source: str) -> str:
        """Return the changed file."""
        return source[: self.start] + self.after + source[self.stop :]


def draw(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """Order mutants by chance; the place of each among the others depends on its own text only."""
    return sorted(mutants, key=lambda m: hashlib.sha256(f"{seed} {m.key}".encode()).digest())


def draw_from_each(modules: list[list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """Draw from every module, from large ones more: in proportion to the root of their mutants.

    The order is that of `draw`, and the first mutants of each module are those that it draws first.
    """
    modules = [draw(mutants, seed) for mutants in modules if mutants]
    taken = [0] * len(modules)
    for _ in range(min(count, sum(map(len, modules)))):
        # whose next mutant stands for the most (Sainte-Lague's method)
        shares = [
            len(mutants) ** 0.5 / (2 * n + 1) if n < len(mutants) else 0.0
            for mutants, n in zip(modules, taken, strict=True)
        ]
        taken[shares.index(max(shares))] += 1
    return draw([m for mutants, n in zip(modules, taken, strict=True) for m in mutants[:n]], seed)


def mutants_of(root: Path, module: str) -> list[Mutant]:
    """Return all mutants of a file, in its order."""
    source = (root / module).read_text()
    changes = _python(source) if module.endswith(".py") else _cuda(source)
    lines = source.splitlines()
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    counts: Counter[tuple[str, str, str]] = Counter()
    found = []
    for start, stop, after, function in sorted(set(changes)):
        line = next(i for i in range(len(lines)) if starts[i + 1] > start)
        same = (lines[line].strip(), source[start:stop], after)
        mutant = Mutant(module, function, line + 1, same[0], start, stop, same[1], after)
        found.append(Mutant(**{**vars(mutant), "number": counts[same]}))
        counts[same] += 1
    return found


Change = tuple[int, int, str, str]


def _python(source: str) -> Iterator[Change]:
    """Yield the changes of a Python file: where, what comes there, and the function around it."""
    rows = source.splitlines(keepends=True)
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))

    def place(line: int, byte: int) -> int:
        return starts[line - 1] + len(rows[line - 1].encode()[:byte].decode())

    tokens = [
        (token.string, starts[token.start[0] - 1] + token.start[1])
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in (tokenize.OP, tokenize.NAME)
    ]

    def span(node: ast.AST) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    def operator(after: int, before: int, symbols: dict[str, list[str]]) -> Iterator[Change]:
        inside = [(text, at) for text, at in tokens if after <= at < before and text not in "()"]
        text, stop = " ".join(t for t, _ in inside), inside[-1][1] + len(inside[-1][0])
        if text in symbols:
            yield from ((inside[0][1], stop, other, "") for other in symbols[text])
        elif text.endswith("="):  # one that assigns
            others = symbols.get(text[:-1], [])
            yield from ((inside[0][1], stop, other + "=", "") for other in others)

    def changes(node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.BinOp():
                yield from operator(span(node.left)[1], span(node.right)[0], BINARY)
            case ast.AugAssign():
                yield from operator(span(node.target)[1], span(node.value)[0], BINARY)
            case ast.Compare():
                left = node.left
                for right in node.comparators:
                    yield from operator(span(left)[1], span(right)[0], COMPARISONS)
                    left = right
            case ast.BoolOp():
                other = {"and": ["or"], "or": ["and"]}
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from operator(span(left)[1], span(right)[0], other)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert() as sign, operand=operand):
                start = span(node)[0]
                if not isinstance(operand, ast.Constant):
                    yield start, start + (3 if isinstance(sign, ast.Not) else 1), "", ""
            case ast.Constant(value=bool(value)):
                yield *span(node), str(not value), ""
            case ast.Constant(value=int(value)):
                yield *span(node), str(value + 1), ""
                if value > 1:
                    yield *span(node), str(value - 1), ""
            case ast.Constant(value=float(value)):
                yield *span(node), repr(2 * value or 1.0), ""
            case ast.Constant(value=str(value)) if value in STRINGS:
                yield *span(node), repr(STRINGS[value]), ""
            case ast.Name(id=name, ctx=ast.Load()) if name in OPPOSITES:
                yield *span(node), OPPOSITES[name], ""
            case ast.Attribute(attr=name) if name in OPPOSITES:
                stop = span(node)[1]
                yield stop - len(name), stop, OPPOSITES[name], ""
            case ast.Subscript(slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                for part in parts:
                    if isinstance(part, ast.Name):
                        yield *span(part), f"{part.id} - 1", ""
            case ast.Continue():
                yield *span(node), "break", ""
            case ast.Break():
                yield *span(node), "continue", ""
            case ast.If() | ast.While() | ast.IfExp():
                start, stop = span(node.test)
                yield start, stop, f"not ({source[start:stop]})", ""
            case ast.Raise() | ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield *span(node), "pass", ""
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                yield *span(node), "pass", ""
        if isinstance(node, ast.AugAssign):
            yield *span(node), "pass", ""

    def walk(node: ast.AST, function: str) -> Iterator[Change]:
        for start, stop, after, _ in changes(node):
            yield start, stop, after, function
        if isinstance(node, ast.Raise | ast.JoinedStr):
            return  # texts of errors
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_no_code(child):
                    continue
                inner = function
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    inner = f"{function}.{child.name}" if function else child.name
                yield from walk(child, inner)

    yield from walk(ast.parse(source), "")


def _is_no_code(node: ast.AST) -> bool:
    """Whether a part only names things (imports, ``__all__``, docstrings) or checks lengths."""
    match node:
        case ast.keyword(arg="strict"):
            return True
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


CUDA_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'
    |(?:^|(?<=\n))[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFuUlL]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<op><<<|>>>|<<=|>>=|->|\+\+|--|::|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>|[<>+\-*/%&|^!~?:;,.=(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
CUDA_OPERATORS = {
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["/"],
    "<": ["<="],
    "<=": ["<"],
    ">": [">="],
    ">=": [">"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "+=": ["-="],
    "-=": ["+="],
    "*=": ["/="],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|"],
    "|": ["&"],
    "++": ["--"],
}
CUDA_OPPOSITES = {
    "min": "max",
    "max": "min",
    "fmin": "fmax",
    "fmax": "fmin",
    "fminf": "fmaxf",
    "fmaxf": "fminf",
    "floor": "ceil",
    "ceil": "floor",
    "true": "false",
    "false": "true",
    "__fadd_ru": "__fadd_rd",
    "__fadd_rd": "__fadd_ru",
    "__fmul_ru": "__fmul_rd",
    "__fmul_rd": "__fmul_ru",
}
#: Before a type's star or reference, or a template's bracket, an operator is none.
CUDA_TYPES = re.compile(
    r"(?:const|auto|void|bool|char|short|int|long|unsigned|float|double|size_t|u?int\d*_t|T|S|\w+_t)"
)


#: What opens a bracket after them at the head of a function, and is not its name.
CUDA_MARKS = ("alignas", "sizeof", "decltype", "static_assert", "__launch_bounds__", "defined")


def _cuda(source: str) -> Iterator[Change]:
    """Yield the changes of a CUDA source, by its tokens."""
    tokens = [m for m in CUDA_TOKEN.finditer(source) if m.lastgroup != "skip"]
    brackets = _template_brackets(tokens)
    for i, function in enumerate(_functions_of(tokens)):
        if function is None:
            continue
        token = tokens[i]
        text, at = token.group(), token.start()
        before = tokens[i - 1].group() if i else ""
        if token.lastgroup == "number":
            yield from ((at, token.end(), other, function) for other in _numbers(text))
        elif token.lastgroup == "name" and text in CUDA_OPPOSITES:
            yield at, token.end(), CUDA_OPPOSITES[text], function
        elif token.lastgroup == "op" and i not in brackets:
            operand = bool(re.fullmatch(r"[\w)\].]+", before)) and before != "return"
            # a type's star or reference, and signs, are no operators
            if text in "+-*&" and (not operand or CUDA_TYPES.fullmatch(before)):
                continue
            if text == "&" and re.fullmatch(r"[A-Z]\w*", before):
                continue
            if text == "*" and re.fullmatch(r"[A-Z][a-z]\w*", before):
                continue
            for other in CUDA_OPERATORS.get(text, []):
                yield at, token.end(), other, function


def _functions_of(tokens: list[re.Match]) -> Iterator[str | None]:
    """Yield, for each token of a CUDA source, the function or struct it is in; None outside."""
    function, depth, rounds, struct = "", 0, 0, False
    for i, token in enumerate(tokens):
        text = token.group()
        rounds += (text == "(") - (text == ")")
        depth += (text == "{") - (text == "}")
        if depth == 0 and rounds == 0 and token.lastgroup == "name" and text not in CUDA_MARKS:
            after = tokens[i + 1].group() if i + 1 < len(tokens) else ""
            if struct or after == "(":
                function = text
            struct = text in ("struct", "union")
        yield function if depth else None


def cuda_functions(source: str) -> dict[str, set[str]]:
    """Return, by function or struct of a CUDA source, the names that stand in it."""
    tokens = [m for m in CUDA_TOKEN.finditer(source) if m.lastgroup != "skip"]
    found: dict[str, set[str]] = {}
    for token, function in zip(tokens, _functions_of(tokens), strict=True):
        if function and token.lastgroup == "name":
            found.setdefault(function, set()).add(token.group())
    return found


def _numbers(text: str) -> Iterator[str]:
    number, suffix = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[\d.eE+-]+?)([fFuUlL]*)", text).groups()
    if re.fullmatch(r"\d+", number) and not suffix.lower().startswith("f"):
        yield f"{int(number) + 1}{suffix}"
        if int(number) > 1:
            yield f"{int(number) - 1}{suffix}"
    elif number.lower().startswith("0x"):
        yield f"{hex(int(number, 16) >> 1)}{suffix}"
    else:
        value = float(number)
        yield f"{2 * value if value else 1.0!r}{suffix}"


def _template_brackets(tokens: list[re.Match]) -> set[int]:
    """Find the tokens ``<`` and ``>`` that enclose arguments of templates."""
    found: set[int] = set()
    plain = re.compile(r"[\w:,*&.]+|sizeof|\(|\)|\+|-|/|%")
    for i, token in enumerate(tokens):
        if token.group() != "<" or i == 0 or tokens[i - 1].lastgroup != "name":
            continue
        depth, round_depth = 0, 0
        for j in range(i, min(i + 40, len(tokens))):
            text = tokens[j].group()
            round_depth += (text == "(") - (text == ")")
            if text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
            elif not plain.fullmatch(text) or round_depth < 0:
                break
            if depth <= 0:
                after = tokens[j + 1].group() if j + 1 < len(tokens) else ""
                name = tokens[i - 1].group()
                typed = (
                    name == "template" or name.endswith("_cast") or after in ("(", "::", "{", ">")
                )
                if typed or (re.match(r"[A-Z]", name) and re.fullmatch(r"[\w&*,)]+", after)):
                    found |= {i, j}
                break
    return found

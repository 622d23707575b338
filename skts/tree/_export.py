"""Shapelet trees as text."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral

from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._parameters import checks_arguments
from .._scalars import takes_plain
from ._base import ShapeletTreeMixin
from ._shapelet_tree import ShapeletTreeClassifier
from ._shapelet_tree_regressor import ShapeletTreeRegressor

__all__ = ["export_text"]


_COUNT = Interval(Integral, 0, None, closed="left")


@takes_plain
@checks_arguments(
    {
        "decision_tree": [ShapeletTreeClassifier, ShapeletTreeRegressor],
        "max_depth": [_COUNT],
        "decimals": [_COUNT],
    }
)
def export_text(
    decision_tree: ShapeletTreeClassifier | ShapeletTreeRegressor,
    *,
    max_depth: int = 10,
    decimals: int = 2,
) -> str:
    """Write the rules of a shapelet tree, in the manner of `sklearn.tree.export_text`.

    Parameters
    ----------
    decision_tree : ShapeletTreeClassifier or ShapeletTreeRegressor
        A fitted tree.
    max_depth : int, default 10
        Deeper branches are cut off.
    decimals : int, default 2
        Digits of thresholds and means after the point.

    Returns
    -------
    str
        One line for each branch and leaf.

    Raises
    ------
    NotFittedError
        If the tree is not fitted.

    Examples
    --------
    >>> from skts.tree import ShapeletTreeClassifier, export_text
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 2, 1, 2, 0], [0, 2, 1, 2, 0, 0]]
    >>> model = ShapeletTreeClassifier(min_length=3, max_length=3).fit(X, [0, 0, 1, 1])
    >>> print(export_text(model))
    |--- [series 2, 2:5] <= 0.50
    |   |--- class: 1
    |--- [series 2, 2:5] >  0.50
    |   |--- class: 0
    <BLANKLINE>
    """
    check_is_fitted(decision_tree)
    return "\n".join(_lines(decision_tree, 0, 0, max_depth, decimals)) + "\n"


def _lines(
    model: ShapeletTreeMixin, node: int, depth: int, max_depth: int, decimals: int
) -> Iterator[str]:
    """The lines of a node and of what lies below it."""
    tree, indent = model.tree_, "|   " * depth + "|--- "
    if tree.children_left[node] < 0:
        if isinstance(model, ShapeletTreeClassifier):
            yield f"{indent}class: {model.classes_[tree.value[node].argmax()]}"
        else:
            yield f"{indent}value: {tree.value[node]:.{decimals}f}"
        return
    if depth > max_depth:
        yield f"{indent}truncated branch"
        return
    text, first = "", tree.first_literal[node]
    for literal in model.shapelets_[first : first + tree.n_literals[node]]:
        where = f"series {literal.series}, {literal.start}:{literal.start + literal.length}"
        if model.n_channels_ > 1:
            where += f", channel {literal.channel}"
        text = f"{text} {literal.logic} [{where}]" if text else f"[{where}]"
    for sign, child in (("<=", tree.children_left[node]), ("> ", tree.children_right[node])):
        yield f"{indent}{text} {sign} {tree.threshold[node]:.{decimals}f}"
        yield from _lines(model, child, depth + 1, max_depth, decimals)

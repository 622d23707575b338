"""Formulas as MathML, which browsers draw by themselves: no script from elsewhere, no network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(self, node):
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(tex2mathml(node.astext(), as_block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

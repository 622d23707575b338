"""After an HTML build every link to a page, an anchor or a file of the site has to lead there."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.errors import ExtensionError

#: Made by viewcode, the theme and asv: not written here.
SKIP = ("_modules/", "_static/", "history/")


def anchors(path, known):
    if path not in known:
        text = path.read_text(encoding="utf-8")
        known[path] = set(re.findall(r'\b(?:id|name)="([^"]+)"', text))
    return known[path]


def broken(root):
    """Pages and links that lead nowhere."""
    known = {}
    for page in sorted(root.rglob("*.html")):
        name = page.relative_to(root).as_posix()
        if name.startswith(SKIP):
            continue
        text = page.read_text(encoding="utf-8")
        for link in sorted(set(re.findall(r'(?:href|src)="([^"]+)"', text))):
            parts = urlsplit(link.replace("&amp;", "&"))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            found = target.exists()
            if found and parts.fragment and target.suffix == ".html":
                found = unquote(parts.fragment) in anchors(target, known)
            if not found:
                yield f"{name}: {link}"


def check(app, error):
    if error is None and app.builder.name == "html":
        found = list(broken(Path(app.outdir)))
        if found:
            raise ExtensionError("links that lead nowhere:\n" + "\n".join(found))


def setup(app):
    app.connect("build-finished", check)
    return {"version": "1", "parallel_read_safe": True}

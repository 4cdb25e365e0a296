"""Settings of the site. `make docs` builds it into target/site."""

import sys
import tomllib
from pathlib import Path

import fastpart

sys.path.insert(0, str(Path(__file__).parent))
import commands
import llms

project = "fastpart"
copyright = "the authors of fastpart"
version = release = fastpart.__version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "sphinx_copybutton"]
html_theme = "furo"
html_title = "fastpart"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
smartquotes = False
highlight_language = "text"
pygments_dark_style = "github-dark"

# Docstrings state the types of parameters in words. Annotations would repeat them.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# GitHub makes the same anchors of headings.
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True


def about():
    """Return version, licence and, if pyproject.toml names it, the repository, as Markdown."""
    package = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    repository = package.get("urls", {}).get("Repository")
    links = [f"[repository]({repository})"] if repository else []
    return ", ".join([f"Version {release}", f"licence {package['license']}", *links])


GENERATED = {
    "index": lambda source: source.replace("<!-- about -->", about()),
    "reference/command-line": commands.page,
}
"""What makes the pages of which a part is generated, from their sources."""


def setup(app):
    """Generate parts of pages, and llms.txt at the root of the site."""

    def write(app, exception):
        if exception is None and app.builder.name == "html":
            (Path(app.outdir) / "llms.txt").write_text(llms.text(Path(app.srcdir)))

    def find(app, env, node, shown):
        """Docstrings name functions and classes without the module of the package that has them."""
        domain = env.get_domain("py")
        for module in ("fastpart", "fastpart.algorithms", "fastpart.typing", "fastpart.store"):
            target = f"{module}.{node['reftarget']}"
            at = env, node["refdoc"], app.builder, node["reftype"], target, node, shown
            if node.get("refdomain") == "py" and (found := domain.resolve_xref(*at)) is not None:
                return found
        return None

    def read(_, name, source):
        source[0] = GENERATED.get(name, str)(source[0])

    app.connect("build-finished", write)
    app.connect("source-read", read)
    app.connect("missing-reference", find)

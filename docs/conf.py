"""Settings of the site. `make docs` builds it into target/site."""

import sys
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


def setup(app):
    """Write llms.txt at the root of the site, and what the commands take into their page."""

    def write(app, exception):
        if exception is None and app.builder.name == "html":
            (Path(app.outdir) / "llms.txt").write_text(llms.text(Path(app.srcdir)))

    def read(_, name, source):
        if name == "reference/command-line":
            source[0] = commands.page(source[0])

    app.connect("build-finished", write)
    app.connect("source-read", read)

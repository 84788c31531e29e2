"""How the pages in this folder become a site: `make docs`. Warnings are errors, a link without its target among them."""

project = "mmcorl"
author = "the mmcorl authors"
extensions = ["myst_parser"]

html_theme = "furo"
html_title = "mmcorl"
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # a page that is opened from disk may not fetch the others
html_show_sphinx = False
html_show_copyright = False

myst_heading_anchors = 3  # `page.md#heading` can be linked, as on the pages of a repository
myst_dmath_double_inline = False
highlight_language = "text"
nitpicky = True

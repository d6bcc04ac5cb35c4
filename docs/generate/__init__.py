"""Generated pages: a module or package per kind, `pages()` is {path below docs/pages: Markdown}."""

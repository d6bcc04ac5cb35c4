"""Generated pages: a module for each kind, with `pages()`: {path below docs/pages: Markdown}."""

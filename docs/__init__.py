"""The documentation: pages written by hand, generated ones, and what makes a site of them."""

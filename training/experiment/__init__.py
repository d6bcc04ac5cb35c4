"""`keras-tupe experiment`: the papers' experiments, planned, run and reported."""

"""`keras-tupe study`: questions that grids of runs answer, and the engine of all of them."""

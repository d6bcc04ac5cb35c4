"""`keras-tupe ablate`: positional methods, compared at equal data, masks and trunk weights."""

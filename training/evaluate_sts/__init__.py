"""`keras-tupe evaluate_sts`: how well vectors of texts agree with people on similarity."""

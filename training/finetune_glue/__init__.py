"""`keras-tupe finetune_glue`: a preset on GLUE, by a paper's protocol."""

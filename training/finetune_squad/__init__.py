"""`keras-tupe finetune_squad`: a preset on SQuAD v1.1."""

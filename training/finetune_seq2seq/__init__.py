"""`keras-tupe finetune_seq2seq`: an encoder and a decoder on pairs of texts."""

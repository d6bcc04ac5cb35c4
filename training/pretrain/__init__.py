"""`keras-tupe pretrain`: an encoder, trained by masked language modeling."""

"""`keras-tupe finetune`: a preset on a task, whatever the task is."""

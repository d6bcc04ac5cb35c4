"""`keras-tupe demo`: the committed model answers, within a minute of the install."""

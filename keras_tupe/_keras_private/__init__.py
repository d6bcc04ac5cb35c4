"""All that is taken from Keras and KerasHub under private names, each with its reason.

Nothing outside this folder uses such a name. Each docstring ends with the public name that would
take its place. As of Keras 3.15 and KerasHub 0.32.
"""

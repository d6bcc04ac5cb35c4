"""The devices that a command works on: what they are, what they can do, what work costs."""

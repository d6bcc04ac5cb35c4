"""Ablations of several objectives, whose runs all cost as many FLOPs, and what they show together.

For `training.ablate --objectives`: each objective has an ablation in a folder of its own.
"""

"""Train steps with windows of attention, from short to long texts, beside Longformer's."""

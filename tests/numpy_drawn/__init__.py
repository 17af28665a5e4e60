"""What Hypothesis draws for each function of `xform.numpy`, a module for each family; see `record`."""

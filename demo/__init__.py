"""The main job: a published posterior reproduced from the data (``make demo``)."""

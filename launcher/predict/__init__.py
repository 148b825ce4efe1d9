"""What a layout's speed should be, by a model fitted on published measurements; never a promise."""

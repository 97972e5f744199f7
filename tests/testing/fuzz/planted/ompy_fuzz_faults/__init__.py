"""Components with one semantic fault each: what `ompy fuzz` must find."""

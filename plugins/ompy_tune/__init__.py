"""`ompy tune`: decision rules for collective components, measured on one's own machine."""

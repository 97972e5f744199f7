"""`ompy tune`: decision rules for coll/tuned, measured on one's own machine."""

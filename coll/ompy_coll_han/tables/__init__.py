"""Decision rules that come with coll/han, in the form of a rules file (see `ompy/mca/coll_rules.py`)."""

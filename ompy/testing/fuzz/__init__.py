"""Random, correct MPI programs against a model of what MPI allows: `ompy fuzz`, described in docs/developers/fuzz.md.

program    actions of several ranks in one global order, as data
actions/   the kinds of actions: each composes itself, says what its ranks do and what they must see
generator  composes a program from a seed
layouts    datatypes at random, and where their bytes lie
script     a program as Python: a rank's part, or a script for people
prelude    what scripts may call
runner     runs programs, many in one job
rank       one rank of that job
shrinker   makes a failing program small
campaign   from one seed on, until something fails
matrix     everything that programs run over
report     what was found, in words
"""

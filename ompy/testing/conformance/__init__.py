"""The conformance kit: does a component keep its framework's contract?

ompy conformance --mca btl mynet,self -n 2,3,5          from a shell
ompy_conformance("btl", "mynet,self", ranks=3)          a fixture, in a component's own tests

check      what is asked: functions that every rank of a job runs at once, each with the clauses that it examines
btl/       the checks of transports, which drive the modules of real processes with nothing of MPI above them
pml/       those of what matches messages: random sequences against a model, lengths, requests, communicators
rte/       those of run-time environments, in jobs that these have started
plm/       those of launchers of processes, with probes in place of ompyrun's proxies
osc/       those of one-sided components, through windows of every kind that they serve
kit        runs checks, many to a job, and judges what comes of them by what the component declares
limits     the level at which the limits on lengths have odd values
job        the kit's side of a job: starts ranks, passes values between them out of band, ends it when it falls silent
rank, wire the ranks' side
clauses    the numbered clauses, read from ompy/mca/<framework>.pxd or .py
report     table, failures in words, JUnit XML
"""

"""Dynamic process management: groups of processes that know nothing of each other become acquainted (MPI-4.1, chapter 11).

channel         bytes between two processes that share a token: each proves that he has it, and every frame is signed
port            where one waits for such a channel, and the string that leads there
acquaintances   the processes of other jobs that this one knows, and when it is done with them
meeting         two groups, whose roots have a channel, become the two sides of an inter-communicator
names           services: ports under a name
spawning        what is to be started, and the meeting with it

             Accept                                   Connect
group a   a0 a1 a2                                  b0 b1   group b
          cards \\|/                                   \\|/ cards
               root ------- channel of the port ------ root
           circle, cards of b                     circle, cards of a
          a0 a1 a2 let b0, b1 in                  b0 b1 let a0, a1, a2 in
               root ------- "all are ready" ---------- root
                    the inter-communicator of a and b
"""

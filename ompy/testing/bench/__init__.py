"""How fast a transport is, beside others: `ompy bench btl NAME`.

rank     what two ranks measure: latency, bandwidth, rate
rounds   jobs of two ranks, one transport after the other and back again; medians
show     the table and the picture
"""

"""btl/zmq: TCP between ranks through ZeroMQ, in plain Python."""

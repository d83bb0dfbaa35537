"""The far end's answers to probes, which count neither as payload nor as sessions.

probe_responders answers handshakes and opens the echo of datagrams (echo_responder), for one responsiveness test;
path_responder answers on the path whose MTU or round trips are measured.
"""

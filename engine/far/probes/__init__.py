"""The far end's part of the further probes of a responsiveness test. None counts as payload or as a session.

probe_responders answers handshakes and opens the echo of datagrams (echo_responder), for one run.
"""

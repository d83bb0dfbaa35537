"""The sessions of datagrams, and their arithmetic.

Sessions: group, sender, receiver, session, socket_options. The arithmetic is pure, and takes the
time as an argument: loss and reordering (sequence_tracker), jitter and delay variation, pacing, the search for
a capacity (capacity_search). May import model, protocol, metering and host.
Public: sender.DatagramSender, receiver.DatagramReceiver.
"""

"""Emulated links: the two ends of a link as two network namespaces of one Linux machine.

What knows what: link.py is what a link is made of (pure); keeper.py is the process that holds a lab and
builds it, with namespaces.py (unshare, setns) and devices.py (ip, tc, TAP); relay.py carries frames where the
kernel cannot do what is asked for; building.py starts a keeper and runs commands at the near end, through enter.py.

Nothing of a lab has a name outside it: its namespaces, devices and queues are held by its processes alone,
and are gone with them, however they end.
"""

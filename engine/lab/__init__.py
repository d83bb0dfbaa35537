"""Emulated links and hosts: network namespaces of one Linux machine.

May import model, protocol, host and far, and one constant of `near`; does not travel to a far end.

Public: `link_lab` (open_lab, Lab, find_orphans, terminate_orphans), `link_spec` (LabLink). `link_lab` starts the
process of `link_keeper`, which builds the lab with `namespaces` (unshare, setns) and `devices` (ip, tc, TAP). A
`relay` process carries frames for links that the kernel's queues cannot emulate.

Several hosts: `hosts_spec` (MeshLabSpec); mesh/lab builds them. Both kinds of lab share `kept_lab`, the BaseKeeper
of `link_keeper`, and `devices`, which has the switches as well.

A lab has no names outside: its processes alone hold its namespaces, devices and queues, which disappear with them.
"""

"""The protocol of iperf3, without I/O: states, parameters, results, refusals and datagrams of both roles.

Imports engine/model, and neither asyncio nor socket. Public names: `states` (State),
`cookie_and_streams`, `parameters` (TestParameters), `plans` (parameters of a plan, and the reverse), `results`
(EndResults), `refusals`
(Iperf3Refusal and its numbers), `datagrams` (headers and hellos), `json_bodies` (documents of the other end),
`users` (UserList, make_token).
"""

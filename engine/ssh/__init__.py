"""A far end that ssh starts: login, bundle, data path, and the program at the far host.

May import all that travels in the bundle, and travels itself.

Public: `ssh_far_end` (open_ssh_far_end, SshFarEnd, PromptCallback), `login` (command line, SSH_COMMAND_VARIABLE),
`ssh_process` (the process), `remote_main` (the program at the far host). Within: `bundle`, `data_path`.
"""

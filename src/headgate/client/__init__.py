"""The jobs of one place: `home.Home` is what can be asked of them.

`jobs.folder_home.FolderHome` answers from a folder on this machine; `server_home.ServerHome` from
a server over HTTP: the same values, the same errors.
"""

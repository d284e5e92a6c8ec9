"""`home.Home` is the interface to the jobs of one place.

`jobs.folder_home.FolderHome` implements it for a folder on this machine, `server_home.ServerHome`
for a server over HTTP: the same values, the same errors.
"""

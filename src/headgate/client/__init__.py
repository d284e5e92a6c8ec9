"""The service of another machine, over HTTP: the same names, the same values, the same errors.

`jobs.Jobs` is what a verb asks: `local` answers from a home on this machine, `remote` from a
server.
"""

"""The server: jobs over HTTP, for programs under /v1 and for people in the console.

Its inner rooms, from the door down; imports only go down:

    process     beside.py  serving.py  app.py
    entrance    login.py  gate.py             what every request passes first
    people      console/                      pages, panels, charts, texts, parts
    programs    api/                          one module for each resource
    changes     actions/                      the same for both
    at hand     signed_in.py  context.py  settings.py  operations.py
    rights      security/                     roles, tokens, sessions, limits, the audit log
"""

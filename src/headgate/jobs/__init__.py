"""The lifecycle room: jobs, what is wanted of them and what they are doing.

Its inner rooms, from the door down; imports only go down:

    the door    folder_home.py
    tools       host/  sandbox/  topics/      this machine; what to try a flow with; topics
    a job       audit/  upkeep/  control/     what is asked of a job that exists
                state/  views/  dead_letters/ what is read of it
                startup/  supervision/        how it is started, and kept going
    its parts   checkpoints/  runs/  attempts/
    its values  options.py  flow_file.py  settings.py  values.py  totals.py  registry.py
    its life    lifecycle/                    pure decisions
    its folder  home.py  event_files.py
"""

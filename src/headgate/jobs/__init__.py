"""The lifecycle room: jobs, their desired state and their status.

Its inner rooms, from the door down; imports only go down:

    the door    folder_home.py
    tools       host/  sandbox/  topics/      this machine; trial data; topics
    a job       audit/  upkeep/  control/     requests to an existing job
                state/  views/  dead_letters/ reads of it
                startup/  supervision/        its start and its supervision
    its parts   checkpoints/  runs/  attempts/
    its values  flow_file.py  settings.py  values.py  totals.py  registry.py
    its life    lifecycle/                    pure decisions
    its folder  job_folder.py  event_files.py
"""

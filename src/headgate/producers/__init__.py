"""Generated data to try flows with: deterministic, plausible, fast.

store.py    the records of a shop: users, items and orders, some of them bad
visits.py   the events of visits, by event time: some out of order, some late
pace.py     sending them, at full speed or at a steady rate
"""

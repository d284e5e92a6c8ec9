"""Jobs from Python: flows that run themselves, handles on jobs, and what a notebook shows of them.

The rest of Headgate is imported when a method needs it, so that `import headgate` stays light.
"""

"""Work past one machine: tasks over files, and replicas that take every step together.

An :class:`~.engine.Engine` says where they run: in threads of this process, or on Ray. A :class:`~.job.Job` is the
folder that all machines see, with a file for everything that is done. The core computes. Neither the number of workers
nor that of shards changes a bit of any result.
"""

"""The run log: every event of every run in one SQLite file, written by a thread and read back.

Public: `RunLog`, `RunRecord`, `new_run_id`, `RUN_LOG_FILE_NAME`; of lists `RunEntry`, `RunQuery`, `RunNumbers`,
`SEARCH_FIELDS`, `SORT_COLUMNS`; of series that are longer than a run `Journal`, `JournalEntry`, `journal_names`.
Within: `store` (RunLog), `writer` (the thread) with `write_backlog`, `listing` (order and entries of a list) with
`run_brief` (the document in short), `stored_events` (how events are encoded and read), `event_blocks` (how they
become small), `removal` (deletion in pieces, and the size of the file), `thinning` (a sample a second of old runs),
`journal`, `label_validation`, `process_locks`, `log_file` (connections, errors), `schema_and_older_files` (the
tables of each version, and what is refused). May import what engine/results may.
"""

from .journal import Journal, JournalEntry, journal_names
from .listing import SEARCH_FIELDS, SORT_COLUMNS, WHOLE, RunEntry, RunNumbers, RunQuery
from .log_file import RUN_LOG_FILE_NAME
from .store import RunLog, RunRecord, new_run_id

__all__ = [
    "RUN_LOG_FILE_NAME",
    "SEARCH_FIELDS",
    "SORT_COLUMNS",
    "WHOLE",
    "Journal",
    "JournalEntry",
    "RunEntry",
    "RunLog",
    "RunNumbers",
    "RunQuery",
    "RunRecord",
    "journal_names",
    "new_run_id",
]

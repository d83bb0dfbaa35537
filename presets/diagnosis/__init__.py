"""Why a link is not faster: what a run's samples show, held against what was expected of it."""

"""One episode: the environment base class, tools, action and observation spaces, event log and faults."""

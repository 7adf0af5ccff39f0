-- Of what an agent has finished nearly all is completed: the few that are not are found by their phase.
DROP INDEX done_agent;
CREATE INDEX done_agent ON done (agent, phase, id) WHERE agent IS NOT NULL;

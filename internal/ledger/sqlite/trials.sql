-- The records in the chains of trials, in log order: a reader that follows trials skips the records of agents.
CREATE INDEX records_in_trials ON records (idx) WHERE chain_id >= 'trial-' AND chain_id < 'trial.';

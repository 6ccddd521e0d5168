-- What stands in the chains of trials, in log order: who follows trials need not read what agents do.
CREATE INDEX records_in_trials ON jurat.records (idx) WHERE chain_id >= 'trial-' AND chain_id < 'trial.';

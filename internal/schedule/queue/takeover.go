package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// TakeOver offers abandoned jobs again: they were begun longer than the lease ago, and no process holds the lock on
// their trial. River's own rescuer knows only when a job was begun, so it would have to wait longer than the longest
// trial takes.
//
// A job that is malformed does not prevent others from being taken over.
//
// TakeOver can be wrong. A process that then works a job of another one finds the trial locked, or over. Its errors
// are those of the database.
func (q *Queue) TakeOver(ctx context.Context) error { return q.takeOver(ctx, q.config.Lease) }

func (q *Queue) takeOver(ctx context.Context, after time.Duration) error {
	running, err := q.list(ctx, river.NewJobListParams().States(rivertype.JobStateRunning))
	if err != nil {
		return err
	}
	params := &riverdriver.JobRescueManyParams{Schema: q.db.dialect.Schema}
	for _, row := range running {
		j, abandoned, err := q.abandoned(ctx, row, after)
		if err != nil {
			q.config.Log.Error("reading the state of a job failed", "job", row.ID, "error", err)
		}
		if !abandoned {
			continue
		}
		if err := offer(params, row); err != nil {
			return err
		}
		q.config.Log.Warn("the process that conducted a trial has stopped; the trial continues elsewhere", "trial", j.Trial, "attempt", row.Attempt)
	}
	if len(params.ID) == 0 {
		return nil
	}
	if _, err := q.db.exec.JobRescueMany(ctx, params); err != nil {
		return fmt.Errorf("taking over jobs: %w", translate(err))
	}
	return nil
}

// abandoned reports whether a job was begun that no process works. A start time far in the future comes from another
// clock, or from before this one was set back. It counts like one far in the past.
func (q *Queue) abandoned(ctx context.Context, row *rivertype.JobRow, after time.Duration) (j job, is bool, err error) {
	if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
		return j, false, err
	}
	if q.isHere(j.Trial) || row.AttemptedAt != nil && time.Since(*row.AttemptedAt).Abs() < after {
		return j, false, nil
	}
	locked, err := q.config.Locks.Locked(ctx, j.Trial)
	return j, err == nil && !locked, err
}

// offer makes a job available again, at its old place in the queue. A job that has used all its attempts fails
// instead.
func offer(params *riverdriver.JobRescueManyParams, row *rivertype.JobRow) error {
	now := time.Now().UTC()
	doc, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: row.Attempt, Error: "the process that conducted it has stopped"})
	if err != nil {
		return err
	}
	state, finalized := rivertype.JobStateAvailable, (*time.Time)(nil)
	if row.Attempt >= row.MaxAttempts {
		state, finalized = rivertype.JobStateDiscarded, &now
	}
	params.ID, params.Error, params.FinalizedAt = append(params.ID, row.ID), append(params.Error, doc), append(params.FinalizedAt, finalized)
	params.ScheduledAt, params.State = append(params.ScheduledAt, row.ScheduledAt), append(params.State, string(state))
	return nil
}

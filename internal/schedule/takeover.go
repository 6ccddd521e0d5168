package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// TakeOver offers again what nobody works any more: jobs that were begun longer than the lease ago, in whose trials nobody acts. River's own
// rescuer knows nothing but how long ago a job was begun, so it would have to wait longer than the longest trial takes.
//
// A job that nobody has made here, or that was changed, keeps no other from being taken over.
//
// It may err. Whoever then works a job that somebody else has, finds the trial claimed, or over.
func (q *Queue) TakeOver(ctx context.Context) error { return q.takeOver(ctx, q.config.Lease) }

func (q *Queue) takeOver(ctx context.Context, after time.Duration) error {
	running, err := q.list(ctx, river.NewJobListParams().States(rivertype.JobStateRunning))
	if err != nil {
		return err
	}
	params := &riverdriver.JobRescueManyParams{Schema: q.db.schema}
	for _, row := range running {
		j, abandoned, err := q.abandoned(ctx, row, after)
		if err != nil {
			q.config.Log.Error("nobody knows whether a job is worked", "job", row.ID, "error", err)
		}
		if !abandoned {
			continue
		}
		if err := offer(params, row); err != nil {
			return err
		}
		q.config.Log.Warn("whoever conducted a trial has stopped; it goes on elsewhere", "trial", j.Trial, "attempt", row.Attempt)
	}
	if len(params.ID) == 0 {
		return nil
	}
	if _, err := q.db.exec.JobRescueMany(ctx, params); err != nil {
		return fmt.Errorf("taking over jobs: %w", translate(err))
	}
	return nil
}

// abandoned reports whether nobody works a job that somebody has begun. One that was begun in the future was begun by another clock, or
// before this one was set back, and says nothing of how long ago that was.
func (q *Queue) abandoned(ctx context.Context, row *rivertype.JobRow, after time.Duration) (j job, is bool, err error) {
	if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
		return j, false, err
	}
	if q.isHere(j.Trial) || row.AttemptedAt != nil && time.Since(*row.AttemptedAt).Abs() < after {
		return j, false, nil
	}
	claimed, err := q.config.Claimed(ctx, j.Trial)
	return j, err == nil && !claimed, err
}

// offer has a job worked again, in its old place, unless it has been the end of too many processes.
func offer(params *riverdriver.JobRescueManyParams, row *rivertype.JobRow) error {
	now := time.Now().UTC()
	doc, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: row.Attempt, Error: "whoever conducted it has stopped"})
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

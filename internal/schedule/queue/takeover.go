package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// TakeOver offers abandoned jobs again: they were begun longer than the lease ago, and no process holds the lock on
// their trial, now and half a lease ago. A process that has just released a trial may still be storing why. River's own
// rescuer knows only when a job was begun, so it would have to wait longer than the longest trial takes.
//
// A job that is malformed does not prevent others from being taken over.
//
// TakeOver can be wrong. A process that then works a job of another one finds the trial locked, or over. Its errors
// are those of the database.
func (q *Queue) TakeOver(ctx context.Context) error {
	return q.takeOver(ctx, q.config.Lease, q.config.Lease/2)
}

// takeOver offers jobs again that were begun longer than after ago, and were first seen idle longer than idle ago.
func (q *Queue) takeOver(ctx context.Context, after, idle time.Duration) error {
	running, err := q.list(ctx, river.NewJobListParams().States(rivertype.JobStateRunning))
	if err != nil {
		return err
	}
	var idling []*rivertype.JobRow
	for _, row := range running {
		abandoned, err := q.abandoned(ctx, row, after)
		if err != nil {
			q.config.Log.Error("reading the state of a job failed", "job", row.ID, "error", err)
		}
		if abandoned {
			idling = append(idling, row)
		}
	}
	taken := q.idleFor(idling, idle)
	if len(taken) == 0 {
		return nil
	}
	if err := q.rescue(ctx, taken); err != nil {
		return fmt.Errorf("taking over jobs: %w", q.db.translate(err))
	}
	return nil
}

// idleFor notes which jobs are idle at this look, and returns those that have been so for a time.
func (q *Queue) idleFor(rows []*rivertype.JobRow, long time.Duration) (list []*rivertype.JobRow) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, before := time.Now(), q.idle
	q.idle = map[run]time.Time{}
	for _, row := range rows {
		r := runOf(row)
		since, was := before[r]
		if !was {
			since = now
		}
		q.idle[r] = since
		if now.Sub(since) >= long {
			list = append(list, row)
		}
	}
	return list
}

// rescue offers jobs again, except those that have ended since they were listed: River's JobRescueMany does not look
// at the state, so it would take the reason for their end from them.
func (q *Queue) rescue(ctx context.Context, rows []*rivertype.JobRow) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tx, err := q.db.exec.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // after a commit it does nothing
	params := &riverdriver.JobRescueManyParams{Schema: q.db.dialect.Schema}
	for _, row := range rows {
		now, err := tx.JobGetByID(ctx, &riverdriver.JobGetByIDParams{ID: row.ID, Schema: q.db.dialect.Schema})
		if errors.Is(err, rivertype.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if now.State != rivertype.JobStateRunning || runOf(now) != runOf(row) {
			continue
		}
		var j job
		if err := json.Unmarshal(now.EncodedArgs, &j); err != nil {
			return err
		}
		if err := offer(params, now); err != nil {
			return err
		}
		uncounted := &riverdriver.JobUpdateFullParams{ID: now.ID, AttemptDoUpdate: true, Attempt: max(0, now.Attempt-1), Schema: q.db.dialect.Schema}
		if _, err := tx.JobUpdateFull(ctx, uncounted); err != nil {
			return err
		}
		q.config.Log.Warn("the process that conducted a trial has stopped; the trial continues elsewhere", "trial", j.Trial, "attempt", now.Attempt)
	}
	if len(params.ID) == 0 {
		return nil
	}
	if _, err := tx.JobRescueMany(ctx, params); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// abandoned reports whether a job was begun that no process works. A start time far in the future comes from another
// clock, or from before this one was set back. It counts like one far in the past.
func (q *Queue) abandoned(ctx context.Context, row *rivertype.JobRow, after time.Duration) (is bool, err error) {
	var j job
	if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
		return false, err
	}
	if q.isHere(j.Trial) || !q.isStored(j.Trial) || row.AttemptedAt != nil && time.Since(*row.AttemptedAt).Abs() < after {
		return false, nil
	}
	locked, err := q.config.Locks.Locked(ctx, j.Trial)
	return err == nil && !locked, err
}

// stopped is the error of an attempt during which the process ended, or could not store how the attempt ended.
const stopped = "the process that conducted it has stopped"

// offer makes a job available again, at its old place in the queue. It fails instead if very many processes have stopped during it: then the
// job may be what ends them.
func offer(params *riverdriver.JobRescueManyParams, row *rivertype.JobRow) error {
	now := time.Now().UTC()
	doc, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: row.Attempt, Error: stopped})
	if err != nil {
		return err
	}
	times := 1
	for _, e := range row.Errors {
		if e.Error == stopped {
			times++
		}
	}
	state, finalized := rivertype.JobStateAvailable, (*time.Time)(nil)
	if times >= mostStopped {
		state, finalized = rivertype.JobStateDiscarded, &now
	}
	params.ID, params.Error, params.FinalizedAt = append(params.ID, row.ID), append(params.Error, doc), append(params.FinalizedAt, finalized)
	params.ScheduledAt, params.State = append(params.ScheduledAt, row.ScheduledAt), append(params.State, string(state))
	return nil
}

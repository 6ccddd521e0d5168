package schedule

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/trial"
)

// An Entry is a trial as the scheduler knows it.
type Entry struct {
	trial.Summary
	State     api.State
	Reason    string    // why the trial was broken off or cancelled
	Next      time.Time // of a broken-off trial: the next automatic attempt; zero: none
	Elsewhere bool      // of a trial under way: another process conducts it
	Ahead     int       // of a queued trial: how many wait before it
}

// Entry returns a trial's state. It returns ErrUnknown for an unknown trial.
func (d *Scheduler) Entry(ctx context.Context, id string) (Entry, error) {
	if err := d.index.Follow(ctx); err != nil {
		return Entry{}, err
	}
	s, ok := d.index.Get(id)
	if !ok {
		return Entry{}, fmt.Errorf("trial %q: %w", id, trial.ErrUnknown)
	}
	list, err := d.place(ctx, []trial.Summary{s})
	if err != nil {
		return Entry{}, err
	}
	return list[0], nil
}

// Entries lists at most n trials that match (nil: all match), the newest first, of those submitted before a given one
// ("": of all). It reports whether there are more. It returns ErrUnknown if the given trial does not exist.
func (d *Scheduler) Entries(ctx context.Context, before string, n int, match func(*trial.Summary) bool) (list []Entry, more bool, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, false, err
	}
	summaries, more, err := d.index.Before(before, n, match)
	if err != nil {
		return nil, false, err
	}
	list, err = d.place(ctx, summaries)
	return list, more, err
}

// Oldest lists at most n trials that match, the oldest first, so that newer trials cannot push out an old one. Its
// errors are those of reading the log and of the queue.
func (d *Scheduler) Oldest(ctx context.Context, n int, match func(*trial.Summary) bool) ([]Entry, error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, err
	}
	left := n
	return d.place(ctx, d.index.List(func(s *trial.Summary) bool { // one after the other, under its lock
		is := left > 0 && match(s)
		if is {
			left--
		}
		return is
	}))
}

// Open returns when the trials were submitted that need a person, the oldest first. Its errors are those of reading the log.
func (d *Scheduler) Open(ctx context.Context) (since []time.Time, err error) {
	if err := d.index.Follow(ctx); err != nil {
		return nil, err
	}
	for _, s := range d.index.List((*trial.Summary).NeedsPerson) {
		since = append(since, s.Submitted)
	}
	return since, nil
}

// place adds the state of queue and locks to what the log says of trials. For an idle trial it reads the log again
// after that: a process appends all its acts before it releases the trial, and may have done so since the log was
// read.
func (d *Scheduler) place(ctx context.Context, summaries []trial.Summary) ([]Entry, error) {
	for {
		list, err := d.placeAsRead(ctx, summaries)
		if err != nil || !slices.ContainsFunc(list, Entry.isIdle) {
			return list, err
		}
		if err := d.index.Follow(ctx); err != nil {
			return nil, err
		}
		changed := false
		for i, e := range list {
			if now, _ := d.index.Get(e.ID); e.isIdle() && now != summaries[i] {
				summaries[i], changed = now, true
			}
		}
		if !changed {
			return list, nil
		}
	}
}

// isIdle reports whether the trial is not over and no process works on it.
func (e Entry) isIdle() bool { return e.State != api.Over && e.State != api.UnderWay }

func (d *Scheduler) placeAsRead(ctx context.Context, summaries []trial.Summary) ([]Entry, error) {
	var list []Entry
	var unfinished []string
	for _, s := range summaries {
		if list = append(list, Entry{Summary: s, State: api.Over}); !s.Over {
			unfinished = append(unfinished, s.ID)
		}
	}
	found, err := d.queue.find(ctx, unfinished...)
	for i := range list {
		if e := &list[i]; err == nil && !e.Over {
			turn, has := found[e.ID]
			err = d.placeOne(ctx, e, turn, has)
		}
	}
	return list, err
}

func (d *Scheduler) placeOne(ctx context.Context, e *Entry, turn turn, has bool) (err error) {
	if d.queue.isHere(e.ID) {
		e.State = api.UnderWay
		return nil
	}
	// A process may work on the trial whatever the queue says: a user resumed it by hand, or it was taken over too soon.
	locked, err := d.cfg.Locks.Locked(ctx, e.ID)
	switch {
	case err != nil:
		return err
	case locked:
		e.State, e.Elsewhere = api.UnderWay, true
	case e.Cancelled != nil:
		e.State, e.Reason = api.Cancelled, e.Cancelled.Reason
	case !has:
		// It was submitted or tried again a moment ago, or the queue was lost. A process puts it at the end of the queue.
		// No one has failed, so there is no reason to show.
		e.State = api.Queued
		e.Ahead, err = d.Waiting(ctx)
	case turn.held:
		e.State, e.Elsewhere = api.UnderWay, true
	case turn.failed || turn.reason != "" && !turn.next.IsZero():
		e.State, e.Reason, e.Next = api.BrokenOff, turn.reason, turn.next
	default:
		e.State = api.Queued
		e.Ahead, err = d.queue.waiting(ctx, turn.place)
	}
	return err
}

// Waiting returns the number of trials that wait for their turn, over all processes. Its errors are those of the
// queue.
func (d *Scheduler) Waiting(ctx context.Context) (int, error) {
	return d.queue.waiting(ctx, math.MaxInt64)
}

// UnderWay returns the number of trials that this process conducts.
func (d *Scheduler) UnderWay() int { return d.queue.underWay() }

// Trials returns the index of trials, brought up to date. Its errors are those of reading the log.
func (d *Scheduler) Trials(ctx context.Context) (*trial.Index, error) {
	return d.index, d.index.Follow(ctx)
}

// States returns the states of trials, in their order. Its errors are those of reading the log and of the queue.
func (d *Scheduler) States(ctx context.Context, summaries []trial.Summary) ([]api.State, error) {
	list, err := d.place(ctx, slices.Clone(summaries))
	states := make([]api.State, 0, len(list))
	for _, e := range list {
		states = append(states, e.State)
	}
	return states, err
}

// Described returns the entry as it travels.
func (e *Entry) Described() api.Submission {
	out := api.Submission{ID: e.ID, State: e.State, Reason: e.Reason, Ahead: e.Ahead, Submitter: e.Submitter, Agent: e.Agent,
		Case: e.Case.String(), Submitted: evidence.FormatTime(e.Submitted), Last: evidence.FormatTime(e.Last), Acts: e.Acts, Offline: e.Offline, Degraded: e.Degraded, Reviews: e.Reviews,
		Outcome: e.Outcome, Delivered: e.Delivered}
	if now := e.Taken(); now != nil {
		out.Taken = &api.Taken{Reviewer: now.Reviewer, Since: evidence.FormatTime(now.At), By: now.By, Reason: now.Reason}
	}
	if e.Cancelled != nil {
		out.CancelledBy = e.Cancelled.By
	}
	if !e.Next.IsZero() {
		out.Next = evidence.FormatTime(e.Next)
	}
	if o := e.Outcome; o != nil {
		out.Verdict = &api.Verdict{Record: o.Verdict.Record, Position: o.Verdict.Position, Score: o.Verdict.Score, Inconclusive: o.Verdict.Inconclusive}
		if o.Decision != nil {
			out.Reviewed = string(o.Decision.Status)
		}
	}
	return out
}

package docket

import (
	"context"
	"fmt"
)

// A State is where a trial is.
type State string

const (
	Queued    State = "queued"     // it waits here for its turn
	UnderWay  State = "under_way"  // here, or in another process
	Over      State = "over"       // the closing is in the log
	BrokenOff State = "broken_off" // it has no closing, and nobody is at work on it
)

// An Entry is a trial on the docket.
type Entry struct {
	Summary
	State     State
	Reason    string // of a trial that was broken off: why
	Elsewhere bool   // of one that is under way: another process conducts it
	Ahead     int    // of one that is queued: how many wait before it
}

// Entry says where a trial is, or ErrUnknown.
func (d *Docket) Entry(ctx context.Context, id string) (Entry, error) {
	if err := d.calendar.follow(ctx, d.cfg.Ledger); err != nil {
		return Entry{}, err
	}
	s, ok := d.calendar.one(id)
	if !ok {
		return Entry{}, fmt.Errorf("trial %q: %w", id, ErrUnknown)
	}
	return d.place(s)
}

// Entries lists at most n trials that match (nil: all match), the newest first, of those that were submitted before a trial ("": of
// all), and says whether there are more. ErrUnknown says that there is no such trial.
func (d *Docket) Entries(ctx context.Context, before string, n int, match func(*Summary) bool) (list []Entry, more bool, err error) {
	if err := d.calendar.follow(ctx, d.cfg.Ledger); err != nil {
		return nil, false, err
	}
	summaries, more, err := d.calendar.before(before, n, match)
	if err != nil {
		return nil, false, fmt.Errorf("trial %q: %w", before, err)
	}
	list, err = d.placeAll(summaries)
	return list, more, err
}

// Oldest lists at most n trials that match, the oldest first: nobody makes one wait for ever by putting others before it.
func (d *Docket) Oldest(ctx context.Context, n int, match func(*Summary) bool) ([]Entry, error) {
	if err := d.calendar.follow(ctx, d.cfg.Ledger); err != nil {
		return nil, err
	}
	return d.placeAll(d.calendar.oldest(n, match))
}

func (d *Docket) placeAll(summaries []Summary) (list []Entry, err error) {
	for _, s := range summaries {
		e, err := d.place(s)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// place adds to what the log says what this process knows.
func (d *Docket) place(s Summary) (Entry, error) {
	e := Entry{Summary: s, State: Over}
	if s.Over {
		return e, nil
	}
	d.mu.Lock()
	w := d.here[s.ID]
	if w != nil {
		e.State = w.state
		if w.reason != nil {
			e.Reason = w.reason.Error()
		}
	}
	if e.State == Queued {
		for e.Ahead < len(d.queue) && d.queue[e.Ahead] != s.ID {
			e.Ahead++
		}
	}
	d.mu.Unlock()
	if e.State == Queued || e.State == UnderWay {
		return e, nil
	}
	// It was broken off, here or elsewhere; but somebody else may have gone on with it.
	claimed, err := d.cfg.Claimed(s.ID)
	switch {
	case err != nil:
		return Entry{}, err
	case claimed:
		e.State, e.Reason, e.Elsewhere = UnderWay, "", true
	case w == nil:
		e.State, e.Reason = BrokenOff, "whoever conducted it has stopped"
	}
	return e, nil
}

// Count says how many trials wait here and how many are under way here.
func (d *Docket) Count() (waiting, underWay int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.here {
		switch w.state {
		case Queued:
			waiting++
		case UnderWay:
			underWay++
		}
	}
	return waiting, underWay
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	smallLog = 1000
	largeLog = 100_000
)

// Ledger measures the cost of appending to a large log, alternating with a log of a thousand records.
func Ledger(ctx context.Context, c Config) (*Report, error) {
	return run(c, "ledger", func(c Config, dir string, r *Report) error {
		if c.Callers == 0 {
			c.Callers = 256
		}
		if c.Records == 0 {
			c.Records = largeLog
		}
		if c.Records <= smallLog {
			return fmt.Errorf("records: a log of %d is not larger than one of %d", c.Records, smallLog)
		}
		r.Settings = Settings{Callers: c.Callers, PayloadBytes: c.Payload, Algorithm: c.Algorithm, Records: c.Records}
		small, err := grown(ctx, c, dir, "small", smallLog)
		if err != nil {
			return err
		}
		large, err := grown(ctx, c, dir, "large", c.Records)
		if err != nil {
			return errors.Join(err, small.Close())
		}
		return errors.Join(appendInTurn(ctx, c, r, small, large), small.Close(), large.Close())
	})
}

// grown returns an installation whose log has n records, all sealed the usual way. It is closed and opened again.
func grown(ctx context.Context, c Config, dir, name string, n int) (*house, error) {
	h, err := furnish(ctx, c, dir, name)
	if err != nil {
		return nil, err
	}
	err = times(ctx, int64(n), 512, h.seal, func(done int64) { c.Progress("records of the "+name+" log sealed", done, int64(n)) })
	if err := errors.Join(err, h.Close()); err != nil {
		return nil, err
	}
	again, err := reopen(ctx, h.config)
	if err != nil {
		return nil, err
	}
	again.draft = h.draft
	again.signers, err = again.Keys.Signers(ctx, "agent", agent)
	if err != nil {
		return nil, errors.Join(err, again.Close())
	}
	return again, nil
}

// A side holds the measurements of one of the two logs.
type side struct {
	*house
	many      meter
	one       timings
	allocated uint64
	used      time.Duration
}

func appendInTurn(ctx context.Context, c Config, r *Report, small, large *house) error {
	sides := []*side{{house: small}, {house: large}}
	begin := time.Now()
	for turn := 0; time.Since(begin) < c.Time || turn < 2; turn++ {
		for _, s := range sides {
			if err := s.turn(ctx, c); err != nil {
				return err
			}
		}
		if err := alone(ctx, sides); err != nil {
			return err
		}
		if turn == 0 { // the first turn warms up, and does not count
			for _, s := range sides {
				*s = side{house: s.house}
			}
		}
		sides[0], sides[1] = sides[1], sides[0] // the second log finds the disk busier, so the order alternates
		c.Progress("appending in turn", int64(time.Since(begin)), int64(c.Time))
	}
	a, b := sides[0], sides[1]
	if a.house != small {
		a, b = b, a
	}
	of := fmt.Sprintf("a log of %d records", smallLog)
	name := fmt.Sprintf("a log of %d records", c.Records)
	r.figure(fmt.Sprintf("time of a record, %d callers, %s", c.Callers, name), "µs", 1/b.many.perSecond()*1e6, &Limit{of, 1 / a.many.perSecond() * 1e6})
	r.figure("time of a record, one caller, "+name+" (median)", "µs", microseconds(b.one.median()), &Limit{of, microseconds(a.one.median())})
	if a.used > 0 {
		r.figure("processor time of a record, "+name, "µs", microseconds(b.used)/float64(b.many.n), &Limit{of, microseconds(a.used) / float64(a.many.n)})
	}
	r.figure("memory allocated for a record, "+name, "bytes", float64(b.allocated)/float64(b.many.n), &Limit{of, float64(a.allocated) / float64(a.many.n)})
	return r.held(ctx, small, large, name, of)
}

// turn lets many callers seal for half a second.
func (s *side) turn(ctx context.Context, c Config) error {
	before, _ := allocated()
	used := processorTime()
	if err := s.many.during(ctx, 500*time.Millisecond, c.Callers, s.seal); err != nil {
		return err
	}
	s.used += processorTime() - used
	after, _ := allocated()
	s.allocated += after - before
	return nil
}

// alone lets one caller seal in each log in turn, record by record, because the disk's speed changes from moment to moment.
func alone(ctx context.Context, sides []*side) error {
	for begin := time.Now(); time.Since(begin) < 400*time.Millisecond; {
		for _, s := range sides {
			if err := s.one.took(func() error { return s.seal(ctx) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// held measures the memory that an open log holds, by closing and reopening one log after the other.
func (r *Report) held(ctx context.Context, small, large *house, name, of string) error {
	measure := func(h *house) (uint64, error) {
		if err := h.Close(); err != nil {
			return 0, err
		}
		_, without := allocated()
		again, err := reopen(ctx, h.config)
		if err != nil {
			return 0, err
		}
		again.draft, again.signers = h.draft, h.signers
		if err := again.seal(ctx); err != nil {
			return 0, errors.Join(err, again.Close())
		}
		_, with := allocated()
		h.Installation = again.Installation
		return max(with, without+1) - without, nil
	}
	a, err := measure(small)
	if err != nil {
		return err
	}
	b, err := measure(large)
	if err != nil {
		return err
	}
	r.figure("memory that an open log holds, "+name, "KiB", float64(b)/1024, &Limit{of, float64(a) / 1024})
	return nil
}

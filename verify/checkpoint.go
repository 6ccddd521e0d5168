package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// stampedCheckpoint is the checkpoint of the checked file and what its time stamps prove: everything that it covers
// existed by then.
type stampedCheckpoint struct {
	tree   *operator.Checkpoint // nil: there is no checkpoint by a log that the reader trusts
	err    error                // why tree is nil
	times  []trust.Stamped
	doubts several
	forged bool
}

// several joins errors. Its text is that of the first one, because the report repeats it for each record.
type several []error

func (s several) Error() string {
	if len(s) == 1 {
		return s[0].Error()
	}
	return fmt.Sprintf("%v; %d more of them prove nothing either", s[0], len(s)-1)
}

func (s several) Unwrap() []error { return s }

// openStamped opens the checkpoint and checks what its time stamps prove.
func (c *check) openStamped(checkpoint string, stamps []evidence.Timestamp) {
	s := &c.checkpoint
	if tree, err := c.openCheckpoint(checkpoint); err == nil {
		s.tree = &tree
	} else {
		s.err = err
	}
	if n := len(stamps); n > maxTimestamps {
		s.doubts = several{fmt.Errorf("the checkpoint has %d time stamps; with more than %d, none is checked", n, maxTimestamps)}
		return
	}
	for i, stamp := range stamps {
		t, err := c.Token(stamp.Token, sha256.Sum256([]byte(checkpoint)), trust.Proof{})
		switch {
		case err == nil:
			s.times = append(s.times, t)
		case trust.Uncheckable(err):
			s.doubts = append(s.doubts, fmt.Errorf("time stamp %d of the checkpoint: %w", i, err))
		default:
			c.refute(Time, "token", nil, "time stamp %d of the checkpoint: %v", i, err)
			s.forged = true
		}
	}
}

// byCheckpoint adds what the checkpoint's time stamps prove about a record that the checkpoint covers.
func (c *check) byCheckpoint(r *evidence.Record, at *trust.Proof) error {
	s := &c.checkpoint
	switch {
	case len(s.times)+len(s.doubts) == 0:
		return nil
	case s.tree == nil:
		return fmt.Errorf("%w: the time stamp is over a checkpoint, and %w", timestamp.ErrUntrusted, s.err)
	case r.Log == nil || included(r, *s.tree) != nil:
		return nil
	}
	for _, t := range s.times {
		at.Add(t)
	}
	if len(s.doubts) == 0 {
		return nil
	}
	return s.doubts
}

// witnessed checks whether enough of the reader's witnesses have cosigned the file's checkpoint. Without witnesses, a
// thief of the log's key could show each reader a different history.
func (c *check) witnessed(checkpoint string) {
	if c.Trust.Quorum == 0 {
		return
	}
	found, err := c.Trust.Witnessed(checkpoint, c.options.At)
	switch {
	case errors.Is(err, trust.ErrNotWitnessed):
		c.placed = append(c.placed, Finding{Guarantee: Order, Status: NotProved, Rule: "witnesses", Reason: err.Error()})
	case err != nil:
		c.placed = append(c.placed, Finding{Guarantee: Order, Status: Refuted, Rule: "cosignature", Reason: err.Error()})
	default:
		names := make([]string, len(found))
		for i, cosignature := range found {
			names[i] = cosignature.Witness.Name()
		}
		c.witnesses = fmt.Sprintf("; %d of the reader's %d witnesses have cosigned it: %s", len(found), len(c.Trust.Witnesses), strings.Join(names, ", "))
	}
}

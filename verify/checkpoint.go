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

// stampedCheckpoint is the checkpoint of what is checked, and what its time stamps prove: all that it covers existed by
// then.
type stampedCheckpoint struct {
	tree   *operator.Checkpoint // nil: none that a log of the reader's signed
	err    error                // why there is none
	times  []trust.ProvedTime
	doubts several
	forged bool
}

// several are errors of which the first is told: they are told again of each record.
type several []error

func (s several) Error() string {
	if len(s) == 1 {
		return s[0].Error()
	}
	return fmt.Sprintf("%v; and %d more of them prove nothing either", s[0], len(s)-1)
}

func (s several) Unwrap() []error { return s }

// openStamped opens the checkpoint and asks what its time stamps prove.
func (c *check) openStamped(checkpoint string, stamps []evidence.Timestamp) {
	s := &c.checkpoint
	if tree, err := c.openCheckpoint(checkpoint); err == nil {
		s.tree = &tree
	} else {
		s.err = err
	}
	if n := len(stamps); n > maxTimestamps {
		s.doubts = several{fmt.Errorf("the checkpoint has %d time stamps: of more than %d none is looked at", n, maxTimestamps)}
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

// byCheckpoint adds what time stamps of the checkpoint prove of a record that it covers.
func (c *check) byCheckpoint(r *evidence.Record, at *trust.Proof) error {
	s := &c.checkpoint
	switch {
	case len(s.times)+len(s.doubts) == 0:
		return nil
	case s.tree == nil:
		return fmt.Errorf("%w: what is stamped is a checkpoint, and %w", timestamp.ErrUntrusted, s.err)
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

// witnessed asks whether as many witnesses have seen the file's checkpoint as the reader demands. Without them one who holds the
// log's key can show everybody another history.
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

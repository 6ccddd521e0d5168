package verify

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// anchors are the stamped checkpoints of the checked file: everything that one covers existed by the times that its tokens prove.
type anchors struct {
	list   []opened
	forged bool // a token is
	forked bool // a checkpoint is of another history than the file's
}

// opened is an anchor and what it proves.
type opened struct {
	size   int64 // how many entries it covers
	err    error // why it covers nothing that the reader knows of
	times  []trust.Stamped
	doubts several
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

// openAnchors checks what the anchors of a file prove. unknown says why the file has no checkpoint that counts; nil: it has.
func (c *check) openAnchors(list []evidence.Anchor, unknown error) {
	for i := range list {
		one := opened{err: unknown}
		if unknown == nil {
			one.size, one.err = c.anchored(&list[i])
		}
		if errors.Is(one.err, operator.ErrFork) && !c.anchors.forked {
			c.anchors.forked = true
			c.placed = append(c.placed, Finding{Guarantee: Order, Status: Refuted, Rule: "fork", Reason: fmt.Sprintf("stamped checkpoint %d: %v", i, one.err)})
		}
		times, doubts, err := c.Anchor(&list[i])
		if err != nil {
			c.refute(Time, "token", nil, "stamped checkpoint %d: %v", i, err)
			c.anchors.forged = true
			continue
		}
		one.times, one.doubts = times, doubts
		c.anchors.list = append(c.anchors.list, one)
	}
}

// anchored returns how many entries of the file's log an anchor covers.
func (c *check) anchored(a *evidence.Anchor) (int64, error) {
	tree, err := c.openCheckpoint(a.Checkpoint)
	if err != nil {
		return 0, err
	}
	small, large := tree, *c.log
	if small.Size > large.Size {
		small, large = large, small
	}
	proof := operator.Consistency{Origin: c.log.Origin, From: small.Size, To: large.Size}
	for _, node := range a.Consistency {
		proof.Proof = append(proof.Proof, tlog.Hash(node))
	}
	return tree.Size, proof.Check(small, large)
}

// byAnchors adds what the anchors prove about a record that they cover.
func (c *check) byAnchors(r *evidence.Record, at *trust.Proof) error {
	if len(c.anchors.list) == 0 {
		return nil
	}
	var doubts several
	covered := c.log != nil && r.Log != nil && included(r, *c.log) == nil
	for _, a := range c.anchors.list {
		switch {
		case a.err != nil && (c.log == nil || covered):
			doubts = append(doubts, fmt.Errorf("%w: the time stamp is over a checkpoint, and %w", timestamp.ErrUntrusted, a.err))
		case a.err == nil && covered && r.Log.Index < a.size:
			for _, t := range a.times {
				at.Add(t)
			}
			doubts = append(doubts, a.doubts...)
		}
	}
	if len(doubts) == 0 {
		return nil
	}
	return doubts
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

package continuous

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

// A watched is what a threshold is compared with: one class of an agent's raters.
type watched struct {
	agent, class string
	panel        evidence.Digest
	threshold    int64
}

// A crossing is an act that reports one.
type crossing struct {
	*operator.ReputationEventBody
	id    string // of the record
	of    evidence.Digest
	at    time.Time       // its claim
	heard map[string]bool // webhooks that took the message, or get it no more; those that took it: true
}

// A book is what the log says of crossings and of who was told.
type book struct {
	next  int64
	last  map[watched]*crossing
	all   map[evidence.Digest]*crossing
	order []*crossing
}

func newBook() *book {
	return &book{last: map[watched]*crossing{}, all: map[evidence.Digest]*crossing{}}
}

// follow reads what is new.
func (b *book) follow(ctx context.Context, log *ledger.Ledger) error {
	for {
		acts, next, err := log.InChain(ctx, operator.ReputationChain, b.next)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && len(acts) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, act := range acts {
			if err := b.add(act); err != nil {
				return fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
			}
		}
		b.next = next
	}
}

func (b *book) add(act *evidence.Record) error {
	body, err := operator.ReadReputationEvent(&act.Payload)
	if err != nil {
		return err
	}
	switch body.Event {
	case operator.ReputationCrossed:
		at, err := evidence.ParseTime(act.Payload.Timestamp)
		if err != nil {
			return err
		}
		c := &crossing{ReputationEventBody: body, id: act.Payload.RecordID, of: act.Digest, at: at, heard: map[string]bool{}}
		b.all[act.Digest], b.order = c, append(b.order, c)
		b.last[watched{body.Agent, body.Class, body.Panel, body.Threshold}] = c
	default:
		if c := b.all[body.Crossing]; c != nil {
			c.heard[body.Webhook] = body.Event == operator.ReputationTold
		}
	}
	return nil
}

// side returns where the log last said that bounds are.
func (b *book) side(w watched) operator.Side {
	if c := b.last[w]; c != nil {
		return c.To
	}
	return operator.SideNone
}

// untold lists crossings since a time of which a webhook was neither told nor is to be told no more.
func (b *book) untold(webhook string, since time.Time) (list []*crossing) {
	for _, c := range b.order {
		if _, heard := c.heard[webhook]; !heard && c.at.After(since) {
			list = append(list, c)
		}
	}
	return list
}

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

func watchedBy(b *operator.ReputationEventBody) watched {
	return watched{b.Agent, b.Class, b.Panel, b.Threshold}
}

// A news is a record of which webhooks are to be told.
type news struct {
	id string // of the record
	of evidence.Digest
	at time.Time // its claim

	crossing *operator.ReputationEventBody // nil: the news is an arrival
	arrival  *arrival                      // nil: the news is a crossing
}

// A book is what the log says of crossings and of who was told.
type book struct {
	next  int64
	last  map[watched]*news
	order []*news           // the crossings
	heard map[delivery]bool // who took a message, or gets it no more
}

func newBook() *book {
	return &book{last: map[watched]*news{}, heard: map[delivery]bool{}}
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
		c := &news{crossing: body, id: act.Payload.RecordID, of: act.Digest, at: at}
		b.order = append(b.order, c)
		b.last[watchedBy(body)] = c
	default:
		b.heard[delivery{body.Of(), body.Webhook}] = true
	}
	return nil
}

// side returns where the log last said that bounds are.
func (b *book) side(w watched) operator.Side {
	if c := b.last[w]; c != nil {
		return c.crossing.To
	}
	return operator.SideNone
}

// untold lists, of some news, those since a time of which a webhook was neither told nor is to be told no more.
func (b *book) untold(webhook string, of []*news, since time.Time) (list []*news) {
	for _, n := range of {
		if !b.heard[delivery{n.of, webhook}] && n.at.After(since) {
			list = append(list, n)
		}
	}
	return list
}

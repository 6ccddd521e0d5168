package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/internal/webhook"
)

const (
	toldFile = "told.json" // in the file store: of which cases the receiver was told, or will not be told
	tellLock = "arrivals"
	tellFor  = 7 * 24 * time.Hour // the receiver is told of a case for so long after it arrived
	every    = 2 * time.Second    // between two rounds
)

// pauses are those between attempts, as the Standard Webhooks convention recommends. After the last, the receiver is not told.
var pauses = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// An arrivalTeller tells a webhook that a case needs a person's decision. A case arrives with the verdict that ends its trial undecided,
// or with a decision that leaves it open. That record is in the log, so every process finds the same cases after every start. A file of
// the installation says of which cases the receiver was told. One process at a time tells; it holds a lock. After a crash a receiver can
// get a message twice, always with the same id. It is not told of a case that a person decided before it took the message.
//
// Its exported fields are required, except URL. Waiting is safe for concurrent use; Tell and Run are not.
type arrivalTeller struct {
	Scheduler *schedule.Scheduler
	Ledger    *ledger.Ledger
	Files     filestore.Store
	Locks     lock.Locks
	Receiver  *webhook.Receiver
	URL       string // of the server: messages link to its pages; "": no links
	Log       *slog.Logger
	Now       func() time.Time

	waiting atomic.Int64
	tried   map[string]attempts
	done    map[string]time.Time // what this process told, in case the file cannot be written
}

type attempts struct {
	n    int
	next time.Time
}

// An arrival is a case that needs a person.
type arrival struct {
	id string // of the record since which it does
	at time.Time
	of *trial.Summary
}

// Waiting returns how many messages the receiver is still to get.
func (t *arrivalTeller) Waiting() int64 { return t.waiting.Load() }

// Run tells until ctx ends. It logs an error when it is new.
func (t *arrivalTeller) Run(ctx context.Context) {
	before := ""
	for {
		text := ""
		if err := t.Tell(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != before {
				t.Log.Error("the webhook was not told of cases that need a person; this is tried again", "error", err)
			}
		}
		before = text
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// Tell looks once for cases that need a person, and tells the receiver. If another process tells, it does nothing. It returns the errors of
// reading the log and of noting what was told. That the receiver refused a message is not one of them: Tell logs it.
func (t *arrivalTeller) Tell(ctx context.Context) error {
	cases, err := t.untold(ctx)
	if err != nil || len(cases) == 0 {
		return err
	}
	held, release, err := t.Locks.Lock(ctx, tellLock)
	if errors.Is(err, lock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if cases, err = t.untold(held); err != nil { // another process may have told them
		return err
	}
	for _, one := range cases {
		if t.Now().Before(t.tried[one.id].next) {
			break // what follows would come before it
		}
		if told, err := t.tell(held, one); err != nil || !told {
			return err
		}
	}
	return nil
}

// untold lists the cases that the receiver is to be told of, the oldest first.
func (t *arrivalTeller) untold(ctx context.Context) (list []arrival, err error) {
	x, err := t.Scheduler.Trials(ctx)
	if err != nil {
		return nil, err
	}
	waiting := x.List((*trial.Summary).NeedsPerson)
	if len(waiting) == 0 { // most of the time
		t.waiting.Store(0)
		return nil, nil
	}
	told, err := t.told(ctx)
	if err != nil {
		return nil, err
	}
	tried := map[string]attempts{}
	for i := range waiting {
		s := &waiting[i]
		at := s.Last
		if d := s.Outcome.Decision; d != nil {
			if at, err = evidence.ParseTime(d.At); err != nil {
				return nil, fmt.Errorf("trial %s: %w", s.ID, err)
			}
		}
		id := s.Waits()
		if _, has := told[id]; has || t.tooOld(at) {
			continue
		}
		list = append(list, arrival{id, at, s})
		if a, has := t.tried[id]; has {
			tried[id] = a
		}
	}
	t.tried = tried
	t.waiting.Store(int64(len(list)))
	slices.SortStableFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
	return list, nil
}

func (t *arrivalTeller) tooOld(at time.Time) bool { return !at.After(t.Now().Add(-tellFor)) }

// told returns the cases that the receiver was told of, or will not be told of, with the times of their arrival.
func (t *arrivalTeller) told(ctx context.Context) (map[string]time.Time, error) {
	told := map[string]time.Time{}
	text, err := t.Files.Read(ctx, toldFile)
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", t.Files.Where(toldFile), err)
	}
	maps.Copy(told, t.done)
	return told, nil
}

// tell tells the receiver of one case, and notes it. It reports whether the next case may follow.
func (t *arrivalTeller) tell(ctx context.Context, one arrival) (bool, error) {
	sent, err := t.send(ctx, one)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	a := t.tried[one.id]
	if a.n++; err != nil && a.n <= len(pauses) && !errors.Is(err, webhook.ErrGone) {
		pause := pauses[a.n-1]
		if refused, ok := errors.AsType[*webhook.RefusedError](err); ok {
			pause = max(pause, refused.After)
		}
		a.next = t.Now().Add(pause)
		t.tried[one.id] = a
		t.Log.Warn("the webhook did not take a message, which is sent again", "trial", one.of.ID, "attempt", a.n, "next", a.next, "error", err)
		return false, nil
	}
	if err != nil {
		t.Log.Error("the webhook is not told of a case that needs a person", "trial", one.of.ID, "attempts", a.n, "error", err)
	} else if sent {
		t.Log.Info("the webhook was told of a case that needs a person", "trial", one.of.ID, "record", one.id)
	}
	return true, t.note(context.WithoutCancel(ctx), one) // otherwise a receiver that took it would get it again
}

// note writes that the receiver was told of a case, or will not be told of it.
func (t *arrivalTeller) note(ctx context.Context, one arrival) error {
	if t.done == nil {
		t.done = map[string]time.Time{}
	}
	t.done[one.id] = one.at
	maps.DeleteFunc(t.done, func(_ string, at time.Time) bool { return t.tooOld(at) })
	told, err := t.told(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(told, func(_ string, at time.Time) bool { return t.tooOld(at) })
	text, err := json.Marshal(told, json.Deterministic(true))
	if err != nil {
		return err
	}
	t.waiting.Add(-1)
	return t.Files.Replace(ctx, toldFile, append(text, '\n'))
}

// A message is what the receiver gets. It has nothing that anybody said in the trial.
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		Log      string          `json:"log"`
		RecordID string          `json:"record_id"`
		Digest   evidence.Digest `json:"digest"`
		Page     string          `json:"page,omitzero"`
		Arrival  messageCase     `json:"arrival"`
	} `json:"data"`
}

type messageCase struct {
	Trial     string   `json:"trial"`
	Agent     string   `json:"agent,omitzero"` // by its card, or its records; "": they name none
	Submitter string   `json:"submitter"`
	Position  string   `json:"position"` // the jury's, as score and method
	Score     int      `json:"score"`
	Method    string   `json:"method"`
	Why       []string `json:"why"`
}

// send sends a message. It sends none, and returns false, if the record has expired.
func (t *arrivalTeller) send(ctx context.Context, one arrival) (bool, error) {
	record, err := t.Ledger.Briefs().ByID(ctx, one.id)
	if errors.Is(err, ledger.ErrExpired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v := &one.of.Outcome.Verdict
	m := message{Type: "review.arrived", Timestamp: evidence.FormatTime(one.at)}
	m.Data.Log, m.Data.RecordID, m.Data.Digest = t.Ledger.Origin(), one.id, record.Digest
	m.Data.Arrival = messageCase{Trial: one.of.ID, Agent: one.of.Agent, Submitter: one.of.Submitter,
		Position: string(v.Position), Score: v.Score, Method: string(v.Method), Why: one.of.WhyOpen()}
	if t.URL != "" {
		m.Data.Page = t.URL + "/reviews/" + url.PathEscape(one.id)
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return false, err
	}
	_, err = t.Receiver.Send(ctx, one.id, t.Now(), body)
	return true, err
}

package docket

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/jury"
)

// A Summary is what the log says of a trial in a few words.
type Summary struct {
	ID        string
	Submitter string          // who put the agent before the jury
	Agent     string          // as its card names itself, at most 200 characters of it; "": there is no card
	Case      evidence.Digest // of the evidence
	Submitted time.Time       // as the submission claims
	Last      time.Time       // as the last act claims
	Acts      int
	Offline   bool // the jurors are rules
	Degraded  bool // so far
	Over      bool
	Fault     string // an act that cannot be read; "": there is none

	Judgment  *Judgment               // nil: there is none yet
	Reviews   int                     // decisions by people on this trial
	Reviewed  evidence.ApprovalStatus // what the last of them decided; "": none
	Delivered bool                    // an answer was delivered after that
}

// A Judgment is the final judgment in a few words.
type Judgment struct {
	Record       string // id of its record
	Position     jury.Position
	Score        int
	Inconclusive bool
}

// A calendar has a Summary of every trial in the log. It follows the log: each look takes in what was appended since the last one,
// whichever process appended it.
type calendar struct {
	mu      sync.Mutex // held while the log is read or the rest is
	next    int64      // the index of the first record that has not been read
	entries map[string]*Summary
	order   []*Summary // in which they were submitted
}

func newCalendar() *calendar { return &calendar{entries: map[string]*Summary{}} }

func (c *calendar) follow(ctx context.Context, l *ledger.Ledger) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, err := range l.Records(ctx, c.next) {
		if err != nil {
			return err
		}
		c.note(r.Record)
		c.next++
	}
	return nil
}

// all lists copies, the oldest first.
func (c *calendar) all() []Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Summary, len(c.order))
	for i, s := range c.order {
		list[i] = *s
	}
	return list
}

func (c *calendar) one(id string) (Summary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.entries[id]
	if s == nil {
		return Summary{}, false
	}
	return *s, true
}

// before lists at most n trials that match, the newest first, of those that were submitted before one ("": of all), and says whether
// there are more.
func (c *calendar) before(id string, n int, match func(*Summary) bool) (list []Summary, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := len(c.order)
	if id != "" {
		// From the end: who turns pages is mostly not far from it.
		for end--; end >= 0 && c.order[end].ID != id; end-- {
		}
		if end < 0 {
			return nil, false, ErrUnknown
		}
	}
	for _, s := range slices.Backward(c.order[:end]) {
		if match != nil && !match(s) {
			continue
		}
		if len(list) == n {
			return list, true, nil
		}
		list = append(list, *s)
	}
	return list, false, nil
}

// oldest lists at most n trials that match, the oldest first.
func (c *calendar) oldest(n int, match func(*Summary) bool) (list []Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.order {
		if len(list) == n {
			break
		}
		if match(s) {
			list = append(list, *s)
		}
	}
	return list
}

// note takes in the next record of the log. One that begins no trial, and is of none that has begun, is none of the docket's.
func (c *calendar) note(r *evidence.Record) {
	p := &r.Payload
	s := c.entries[p.ChainID]
	switch {
	case !strings.HasPrefix(p.ChainID, evidence.TrialPrefix):
	case s == nil && p.ActionType == evidence.Submission:
		c.begin(p)
	case s == nil:
	case !p.ActionType.InTrial():
		s.decide(p)
	default:
		s.act(r)
	}
}

func (c *calendar) begin(p *evidence.Payload) {
	s := &Summary{ID: p.ChainID, Submitter: p.AgentID, Agent: agentOf(p), Case: p.Case, Submitted: p.Time(), Last: p.Time(), Acts: 1}
	c.entries[s.ID] = s
	c.order = append(c.order, s)
}

func (s *Summary) act(r *evidence.Record) {
	s.Acts, s.Last = s.Acts+1, r.Payload.Time()
	a, err := jury.ReadAct(r)
	if err != nil { // one trial that cannot be read must not hide the others
		s.Fault = "record " + r.Payload.RecordID + ": " + err.Error()
		return
	}
	if _, _, missing := jury.Missing(a.Body); missing {
		s.Degraded = true
	}
	switch body := a.Body.(type) {
	case *jury.Opening:
		s.Offline = !slices.ContainsFunc(body.Settings.Seats, func(seat jury.Seat) bool { return seat.Provider != jury.Offline })
	case *jury.Judgment:
		s.Judgment = &Judgment{r.Payload.RecordID, body.Position, body.Score, body.Inconclusive}
	case *jury.Closing:
		s.Over = true
	}
}

// decide notes what people decided on a trial.
func (s *Summary) decide(p *evidence.Payload) {
	switch p.ActionType {
	case evidence.HumanReview:
		s.Reviews, s.Reviewed, s.Delivered = s.Reviews+1, p.ApprovalStatus, false
	case evidence.Delivery:
		s.Delivered = true
	}
}

// agentOf reads the one member that a list shows: the evidence may be long, and was examined when it was submitted.
func agentOf(p *evidence.Payload) string {
	var on struct {
		AgentCard struct {
			Name string `json:"name"`
		} `json:"agentCard"`
	}
	if json.Unmarshal(p.Response, &on) != nil {
		return "" // evidence of records may have no card
	}
	runes := []rune(on.AgentCard.Name)
	return string(runes[:min(len(runes), 200)])
}

package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/names"
	"jurat/internal/webhook"
)

// Continuous says which records are tried without anybody asking, and who is told of what comes out: the section continuous of a file.
type Continuous struct {
	Agents     []string    `json:"agents,omitzero"`        // whose records; none: every agent's
	Drawn      int64       `json:"drawn,omitzero"`         // of so many records, each witness's draw takes one; 0: no draw counts
	Sampled    int64       `json:"sampled,omitzero"`       // of so many records, this installation takes one by itself; 0: none
	Recorded   bool        `json:"recorded,omitzero"`      // what recorders saw agents do is tried, too; its texts then stand in the trials, from which they cannot be erased
	TrialsADay int         `json:"trials_a_day,omitzero"`  // at most so many begin within 24 hours
	DollarsDay *float64    `json:"dollars_a_day,omitzero"` // US dollars that trials of 24 hours may cost together, more than 0; nil: only the number is limited
	Wait       Duration    `json:"wait,omitzero"`          // for so long after it was sealed, a record is left alone; 0: ten minutes
	Records    int         `json:"records,omitzero"`       // at most so many of the record's chain are put before the jury; 0: 50
	Thresholds []Threshold `json:"thresholds,omitzero"`    // somebody is told when an agent's bounds pass one
	Arrivals   bool        `json:"arrivals,omitzero"`      // somebody is told when a case needs a person's decision
	Webhooks   []Webhook   `json:"webhooks,omitzero"`      // who is told
}

// A Threshold of an agent's reputation.
type Threshold struct {
	Agent   string  `json:"agent"`
	Percent float64 `json:"percent"` // more than 0, at most 100, at most two digits behind the point
}

// Parts returns the threshold in parts of ten thousand.
func (t *Threshold) Parts() int64 { return int64(math.Round(t.Percent * 100)) }

// A Webhook is a receiver of messages.
type Webhook struct {
	ID     string `json:"id"` // its name in records and on pages
	URL    string `json:"url"`
	Secret *Key   `json:"secret"`
	Old    *Key   `json:"old_secret,omitzero"` // is accepted, too, while a new one takes its place
	Inward bool   `json:"inward,omitzero"`     // it may be in a private network, and be reached by plain http
}

// Limits of what is tried continuously.
const (
	maxShare       = 1 << 32
	maxTrialsADay  = 100_000
	maxAgents      = 1000
	maxThresholds  = 1000
	maxWebhooks    = 20
	maxExhibits    = 1000
	defaultWait    = 10 * time.Minute
	defaultRecords = 50
)

// Tries reports whether records are tried. If not, no jury needs to sit.
func (c *Continuous) Tries() bool { return c.Drawn > 0 || c.Sampled > 0 }

// WaitTime returns how long a record is left alone.
func (c *Continuous) WaitTime() time.Duration { return cmp.Or(time.Duration(c.Wait), defaultWait) }

// MaxRecords returns how many records of a chain are put before the jury.
func (c *Continuous) MaxRecords() int { return cmp.Or(c.Records, defaultRecords) }

// MicroDollars returns the limit on cost in millionths of a dollar; 0: there is none.
func (c *Continuous) MicroDollars() int64 {
	if c.DollarsDay == nil {
		return 0
	}
	return int64(math.Max(1, math.Floor(*c.DollarsDay*1e6+1e-6)))
}

func (c *Continuous) check(here jsontext.Pointer) error {
	switch {
	case c == nil:
		return nil
	case c.Drawn < 0 || c.Drawn > maxShare:
		return wrong(here+"/drawn", "one of so many records: want 1 to %d", int64(maxShare))
	case c.Sampled < 0 || c.Sampled > maxShare:
		return wrong(here+"/sampled", "one of so many records: want 1 to %d", int64(maxShare))
	case !c.Tries() && len(c.Thresholds) == 0 && !c.Arrivals:
		return wrong(here, "want drawn or sampled, which say what is tried, or thresholds or arrivals, which say what is told")
	case c.Tries() && (c.TrialsADay < 1 || c.TrialsADay > maxTrialsADay):
		return wrong(here, "want trials_a_day: 1 to %d", maxTrialsADay)
	case c.DollarsDay != nil && !(*c.DollarsDay > 0 && *c.DollarsDay <= maxDollars):
		return wrong(here+"/dollars_a_day", "want US dollars, more than 0 and at most %d", maxDollars)
	case c.Records < 0 || c.Records > maxExhibits:
		return wrong(here+"/records", "want 1 to %d", maxExhibits)
	case len(c.Agents) > maxAgents:
		return wrong(here+"/agents", "want at most %d; without agents, every agent's records count", maxAgents)
	case len(c.Thresholds) > maxThresholds:
		return wrong(here+"/thresholds", "want at most %d", maxThresholds)
	case len(c.Webhooks) > maxWebhooks:
		return wrong(here+"/webhooks", "want at most %d", maxWebhooks)
	case len(c.Webhooks) > 0 && len(c.Thresholds) == 0 && !c.Arrivals:
		return wrong(here+"/webhooks", "there are no thresholds and no arrivals, so these are told nothing")
	case c.Arrivals && len(c.Webhooks) == 0:
		return wrong(here+"/arrivals", "there are no webhooks, so nobody is told")
	}
	return errors.Join(c.checkAgents(here), c.checkThresholds(here), c.checkWebhooks(here))
}

func (c *Continuous) checkAgents(here jsontext.Pointer) error {
	for i, name := range c.Agents {
		at := jsontext.Pointer(fmt.Sprintf("%s/agents/%d", here, i))
		if err := evidence.CheckName(name); err != nil {
			return wrong(at, "%v", err)
		}
		if slices.Contains(c.Agents[:i], name) {
			return wrong(at, "%q is there twice", name)
		}
	}
	return nil
}

func (c *Continuous) checkThresholds(here jsontext.Pointer) error {
	for i := range c.Thresholds {
		t := &c.Thresholds[i]
		at := jsontext.Pointer(fmt.Sprintf("%s/thresholds/%d", here, i))
		if err := evidence.CheckName(t.Agent); err != nil {
			return wrong(at+"/agent", "%v", err)
		}
		if parts := t.Percent * 100; !(parts >= 1 && parts <= 10_000) || math.Abs(parts-math.Round(parts)) > 1e-6 {
			return wrong(at+"/percent", "want a per cent number from 0.01 to 100, with at most two digits behind the point")
		}
		if slices.ContainsFunc(c.Thresholds[:i], func(before Threshold) bool { return before.Agent == t.Agent && before.Parts() == t.Parts() }) {
			return wrong(at, "this threshold is there twice")
		}
	}
	return nil
}

func (c *Continuous) checkWebhooks(here jsontext.Pointer) error {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		at := jsontext.Pointer(fmt.Sprintf("%s/webhooks/%d", here, i))
		if err := names.Check(w.ID); err != nil {
			return wrong(at+"/id", "%v", err)
		}
		if slices.ContainsFunc(c.Webhooks[:i], func(before Webhook) bool { return before.ID == w.ID }) {
			return wrong(at+"/id", "%q is the id of an earlier webhook, too", w.ID)
		}
		if err := webhook.CheckURL(w.URL, w.Inward); err != nil {
			return wrong(at+"/url", "%v", err)
		}
		if w.Secret == nil {
			return wrong(at, "want secret: {env: NAME} or {file: NAME}, which says where the secret is found")
		}
		if err := errors.Join(w.Secret.check(at+"/secret"), w.Old.check(at+"/old_secret")); err != nil {
			return err
		}
	}
	return nil
}

// Receiver finds the secrets of a webhook and makes its receiver. Its errors do not repeat a secret, and include ErrNoKey.
func (w *Webhook) Receiver(env Lookup) (*webhook.Receiver, error) {
	c := webhook.Config{URL: w.URL, Inward: w.Inward}
	for _, key := range []*Key{w.Secret, w.Old} {
		if key == nil {
			continue
		}
		secret, err := key.find(env)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", w.ID, err)
		}
		c.Secrets = append(c.Secrets, secret)
	}
	r, err := webhook.New(c)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", w.ID, err)
	}
	return r, nil
}

// find returns the key from the place that was named.
func (k *Key) find(env Lookup) (string, error) {
	if k.File != "" {
		return readKey(k.File)
	}
	if key := strings.TrimSpace(env(k.Env)); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%w: %s is not set", ErrNoKey, k.Env)
}

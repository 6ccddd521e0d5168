package pages

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/jury"
	"jurat/verify"
)

// A Desk lists what needs a person, oldest first.
type Desk struct {
	Items   []Item
	Decided []Item // lately, the newest first
}

// An Item is one thing on the desk.
type Item struct {
	Record  string // on which to decide
	Subject string // whom it is about
	Actor   string
	At      time.Time
	Trial   *Summary // nil: it is a record of an agent
	Own     bool     // the viewer submitted it
	Status  evidence.ApprovalStatus
}

// NewDesk takes those trials that need a person.
func NewDesk(trials []Summary, viewer string) *Desk {
	d := &Desk{}
	for _, s := range trials {
		if s.NeedsPerson() {
			d.Items = append(d.Items, NewItem(s, viewer))
		}
	}
	slices.SortStableFunc(d.Items, func(a, b Item) int { return a.At.Compare(b.At) })
	return d
}

// NewItem is the judgment of a trial, for a viewer.
func NewItem(s Summary, viewer string) Item {
	return Item{Record: s.Judgment, Subject: s.Agent, Actor: s.Submitter, At: s.At, Trial: &s, Own: s.Submitter == viewer}
}

func (d *Desk) view() string              { return "desk" }
func (d *Desk) headline(lang Lang) string { return must(lang, "desk.title") }

// A Review is the page on which a person decides on one record.
type Review struct {
	Record   *evidence.Record
	Trial    string // its id; "": it is of no trial
	Subject  string
	Editable Editable
	Draft    Draft
	Diff     []Change // between what was said and the draft; nil: nothing was changed yet
	Own      bool     // the viewer made it, or submitted the agent
	May      bool     // the viewer is a reviewer
	Reviews  []Decision
	Problem  string // why the decision was not taken; "": nothing was tried yet
}

// An Editable is what can be changed of a response.
type Editable struct {
	Text     string
	Position jury.Position // of a final judgment; "": there is none
	JSON     bool          // Text is JSON, and must stay so
}

// A Draft is what the reviewer has put down so far.
type Draft struct {
	Key      string // the same as long as it is the same form, so that sending it twice decides once
	Text     string
	Position jury.Position
	Reason   string
}

// NewReview makes the page for a record.
func NewReview(r *evidence.Record) (*Review, error) {
	e, err := editable(r)
	if err != nil {
		return nil, err
	}
	return &Review{Record: r, Editable: e, Draft: Draft{Text: e.Text, Position: e.Position}}, nil
}

// ErrWithheld says that nobody can decide on what is withheld.
var ErrWithheld = errors.New("the response is sealed apart and not disclosed here, so nobody can decide on it")

func editable(r *evidence.Record) (Editable, error) {
	response, withheld := verify.Said(r, "/response", r.Payload.Response)
	switch {
	case withheld:
		return Editable{}, ErrWithheld
	case len(response) == 0:
		return Editable{}, fmt.Errorf("a record of %s has no response to decide on", r.Payload.ActionType)
	case r.Payload.ActionType == evidence.FinalJudgment:
		var j jury.Judgment
		if err := json.Unmarshal(response, &j); err != nil {
			return Editable{}, fmt.Errorf("reading judgment: %w", err)
		}
		return Editable{Text: j.Rationale, Position: j.Position}, nil
	}
	return Editable{Text: text(response), JSON: response.Kind() != '"'}, nil
}

// Modified is the response that a draft makes of a record's. It returns nil where the draft changes nothing.
func Modified(r *evidence.Record, d Draft) (jsontext.Value, error) {
	e, err := editable(r)
	if err != nil {
		return nil, err
	}
	if d.Text == e.Text && d.Position == e.Position {
		return nil, nil
	}
	response, _ := verify.Said(r, "/response", r.Payload.Response)
	switch {
	case e.Position != "":
		return modifiedJudgment(response, d)
	case e.JSON:
		doc, err := evidence.Canonical([]byte(d.Text))
		if err != nil {
			return nil, fmt.Errorf("the response is JSON and must stay JSON: %w", err)
		}
		if k := jsontext.Value(doc).Kind(); k != '{' && k != '[' {
			return nil, errors.New("the response is a JSON object or array and must stay one")
		}
		if string(doc) == string(response) {
			return nil, nil // it was only laid out in another way
		}
		return doc, nil
	}
	return json.Marshal(d.Text)
}

func modifiedJudgment(response jsontext.Value, d Draft) (jsontext.Value, error) {
	if !slices.Contains(positions(), d.Position) {
		return nil, fmt.Errorf("%q is no position: give one of %q", plain(string(d.Position)), positions())
	}
	var j map[string]jsontext.Value
	if err := json.Unmarshal(response, &j); err != nil {
		return nil, fmt.Errorf("reading judgment: %w", err)
	}
	for name, value := range map[string]any{"rationale": d.Text, "position": d.Position} {
		doc, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing judgment: %w", err)
		}
		j[name] = doc
	}
	doc, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("writing judgment: %w", err)
	}
	return evidence.Canonical(doc)
}

func positions() []jury.Position {
	return []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}
}

// Positions lists what a judgment can come to.
func (r *Review) Positions() []jury.Position { return positions() }

// Compare shows what the draft changes.
func (r *Review) Compare() {
	if r.Draft.Text != r.Editable.Text {
		r.Diff = diff(r.Editable.Text, r.Draft.Text)
	}
}

func (r *Review) view() string { return "review" }

func (r *Review) headline(lang Lang) string {
	return must(lang, "review.title") + " · " + incident.ActionName(lang, r.Record.Payload.ActionType)
}

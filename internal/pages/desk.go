package pages

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/jury"
)

// A Desk lists what needs a person, the oldest first.
type Desk struct {
	Items   []Item
	Decided []Item // recent decisions, the newest first

	Show    Shown    // which waiting cases it lists
	May     bool     // the viewer is a reviewer, who can decide several cases by one form
	Assigns bool     // the viewer is an operator, who can assign cases to reviewers
	Form    Several  // what was filled in
	Problem string   // why nothing of the form was done; "": it was, or there was none
	Results []Result // what happened to the cases of the form
}

// An Item is one entry of the desk.
type Item struct {
	Record  string // the record to decide on
	Subject string // the agent it is about
	Actor   string
	At      time.Time
	Trial   *Summary // nil: it is an agent's record
	Own     bool     // the viewer submitted it
	Marked  bool     // the form's case that was not decided
}

// NewDesk selects the trials that need a person.
func NewDesk(trials []Summary, viewer string) *Desk {
	d := &Desk{}
	for _, s := range trials {
		if s.NeedsPerson() {
			d.Items = append(d.Items, NewItem(s, viewer))
		}
	}
	sort.SliceStable(d.Items, func(i, j int) bool { return d.Items[i].At.Before(d.Items[j].At) })
	return d
}

// NewItem describes the judgment of a trial for a viewer.
func NewItem(s Summary, viewer string) Item {
	item := Item{Subject: s.Agent, Actor: s.Submitter, At: s.Submitted, Trial: &s, Own: s.Submitter == viewer}
	if s.Outcome != nil {
		item.Record = s.Outcome.Verdict.Record
	}
	return item
}

// Taken says who means to decide on the case; nil: nobody has taken it.
func (i Item) Taken() *trial.Taken {
	if i.Trial == nil {
		return nil
	}
	return i.Trial.Taken()
}

// Seen is the value of the case's mark; "": there is nothing to decide.
func (i Item) Seen() string {
	if i.Trial == nil || i.Trial.Outcome == nil {
		return ""
	}
	return SeenOf(i.Trial.Outcome).String()
}

func (d *Desk) view() string                    { return "desk" }
func (d *Desk) headline(lang words.Lang) string { return words.OfPages(lang).Say("desk.title") }

// A Review is the page for a person's decision on one record.
type Review struct {
	Record   *evidence.Record
	Trial    string // its id; "": the record belongs to no trial
	Subject  string
	Editable Editable
	Draft    Draft
	Diff     []Change     // from the original to the draft; nil: nothing was changed yet
	Own      bool         // the viewer made it, or submitted the agent
	May      bool         // the viewer is a reviewer
	Waits    bool         // it is a verdict that needs a person
	Taken    *trial.Taken // who means to decide on it; nil: nobody has taken it
	Reviews  []Decision
	Court    *Court // of the trial, if the record is a verdict; nil otherwise
	Previous string // record id of the verdict before it in the queue; "": no other one waits
	Next     string // the same of the one after it
	Problem  string // why the decision was refused; "": there was no attempt yet
}

// An Editable is the part of a response that a person can change.
type Editable struct {
	Text     string
	Position jury.Position // of a final judgment, of which only the position can change; "": it is not one
	JSON     bool          // Text is JSON, and must remain JSON
}

// A Draft is the reviewer's input so far.
type Draft struct {
	Key    string // the same for the same form, so that sending it twice decides once
	Text   string
	Reason string
}

// NewReview makes the page for a record. It returns ErrWithheld if the response is withheld, and an error if the
// record has none.
func NewReview(r *evidence.Record) (*Review, error) {
	e, err := editable(r)
	if err != nil {
		return nil, err
	}
	return &Review{Record: r, Editable: e, Draft: Draft{Text: e.Text}}, nil
}

// ErrWithheld says that a response cannot be decided on because it is withheld.
var ErrWithheld = errors.New("the response is sealed apart and not disclosed here, so a person cannot decide on it")

func editable(r *evidence.Record) (Editable, error) {
	response, withheld := r.Said("/response", r.Payload.Response)
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

// Modified returns the response that a draft makes of a record's response, except for a verdict. It returns nil if
// the draft changes nothing. It returns ErrWithheld if the response was not disclosed, and refuses a change of the
// jury's words, of the kind of a JSON response, and a record without a response.
func Modified(r *evidence.Record, d Draft) (jsontext.Value, error) {
	e, err := editable(r)
	if err != nil {
		return nil, err
	}
	if d.Text == e.Text {
		return nil, nil
	}
	response, _ := r.Said("/response", r.Payload.Response)
	switch {
	case e.Position != "":
		return nil, errors.New("the jury's words stay as they are: a person passes or fails the agent, and gives the reason")
	case e.JSON:
		doc, err := evidence.Canonical([]byte(d.Text))
		if err != nil {
			return nil, fmt.Errorf("the response is JSON and must stay JSON: %w", err)
		}
		if k := jsontext.Value(doc).Kind(); k != '{' && k != '[' {
			return nil, errors.New("the response is a JSON object or array and must stay one")
		}
		if string(doc) == string(response) {
			return nil, nil // only the layout changed
		}
		return doc, nil
	}
	return json.Marshal(d.Text)
}

// Positions lists the possible decisions on a verdict.
func (r *Review) Positions() []jury.Position { return jury.Decidable() }

// Decided reports whether the jury passed or failed the agent. Only then can a person reject the verdict.
func (r *Review) Decided() bool { return slices.Contains(jury.Decidable(), r.Editable.Position) }

// Compare computes what the draft changes.
func (r *Review) Compare() {
	if r.Draft.Text != r.Editable.Text {
		r.Diff = diff(r.Editable.Text, r.Draft.Text)
	}
}

func (r *Review) view() string { return "review" }

func (r *Review) headline(lang words.Lang) string {
	return words.OfPages(lang).Say("review.title") + " · " + name(lang, r.Record.Payload.ActionType)
}

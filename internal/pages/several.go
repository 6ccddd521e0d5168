package pages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/jury"
)

// MostAtOnce is how many cases one form decides. It bounds how long the server works on the form.
const MostAtOnce = 100

// Most returns MostAtOnce.
func (d *Desk) Most() int { return MostAtOnce }

// Several is a form for several cases of the desk.
type Several struct {
	Draft    // it has no text
	Decision string
	To       string // whom they are assigned to
	Show     Shown
	Marked   []string
}

// What a form can do beside deciding.
const (
	LookAgain = "look" // nothing: it shows the queue again
	Take      = "take"
	GiveBack  = "give_back"
	Assign    = "assign"
)

// Decides reports whether the form decides cases.
func (f *Several) Decides() bool { return slices.Contains(DecisionsAtOnce(), f.Decision) }

// Check returns the marked cases if the form does something with them. It returns an error with api.ErrInvalid if the form lacks something.
func (f *Several) Check() ([]Seen, error) {
	can := append(DecisionsAtOnce(), Take, GiveBack, Assign)
	switch {
	case f.Decision == LookAgain:
		return nil, nil
	case !slices.Contains(can, f.Decision):
		return nil, fmt.Errorf("%w: field decision: want one of %q, not %q", api.ErrInvalid, can, evidence.Abbreviate(f.Decision))
	case f.Key == "":
		return nil, fmt.Errorf("%w: field key: is missing; load the page again", api.ErrInvalid)
	case f.Decides() && strings.TrimSpace(f.Reason) == "":
		return nil, fmt.Errorf("%w: field reason: a decision needs a reason", api.ErrInvalid)
	case f.Decision == Assign && strings.TrimSpace(f.To) == "":
		return nil, fmt.Errorf("%w: field to: name the reviewer", api.ErrInvalid)
	}
	seen, err := readMarked(f.Marked)
	if err != nil {
		return nil, fmt.Errorf("%w: field case: %w", api.ErrInvalid, err)
	}
	return seen, nil
}

// Shown says which waiting cases a desk lists.
type Shown string

const (
	ShowAll        Shown = ""
	ShowMine       Shown = "mine"       // those that the viewer has taken
	ShowUnassigned Shown = "unassigned" // those that nobody has taken
)

// ReadShown reads a parameter. It returns an error for one that is none.
func ReadShown(value string) (Shown, error) {
	if show := Shown(value); slices.Contains([]Shown{ShowAll, ShowMine, ShowUnassigned}, show) {
		return show, nil
	}
	return "", fmt.Errorf("show: %q: want mine or unassigned, or leave it out", evidence.Abbreviate(value))
}

// DecisionsAtOnce lists the decisions that a form can make on several cases.
func DecisionsAtOnce() []string {
	return []string{string(jury.SafePass), string(jury.UnsafeFail), string(evidence.Rejected)}
}

// Seen is the state of a case as a page showed it. A form for several cases counts only for this state.
type Seen struct {
	Verdict  string // record id
	Decision string // record id of the last decision on it; "": none
}

// SeenOf returns the state of a case.
func SeenOf(o *jury.TrialOutcome) Seen {
	s := Seen{Verdict: o.Verdict.Record}
	if o.Decision != nil {
		s.Decision = o.Decision.Record
	}
	return s
}

// String is the value of a case's mark in the form.
func (s Seen) String() string {
	if s.Decision == "" {
		return s.Verdict
	}
	return s.Verdict + "." + s.Decision
}

// readMarked reads the marks of a form. It returns an error if there are none, too many, or two of one case.
func readMarked(values []string) (list []Seen, err error) {
	if len(values) == 0 {
		return nil, errors.New("no case is marked: mark those to decide")
	}
	if len(values) > MostAtOnce {
		return nil, fmt.Errorf("%d cases are marked, but one form decides at most %d: mark fewer", len(values), MostAtOnce)
	}
	for _, value := range values {
		var s Seen
		s.Verdict, s.Decision, _ = strings.Cut(value, ".")
		if slices.ContainsFunc(list, func(other Seen) bool { return other.Verdict == s.Verdict }) {
			return nil, fmt.Errorf("%q is marked twice: load the page again", evidence.Abbreviate(s.Verdict))
		}
		list = append(list, s)
	}
	return list, nil
}

// A Result is what happened to one of several cases.
type Result struct {
	Record  string // of the verdict
	Subject string // the agent; "": not known
	Did     string // the form's decision
	To      string // of Assign: whom it is assigned to
	Problem string // why it was not done; "": it was
}

// Answer adds what happened to a form. Cases with which nothing was done stay marked, if they are as the form had them, and the form stays
// filled in for them.
func (d *Desk) Answer(results []Result, form Several) {
	key := d.Form.Key
	d.Results, d.Form = results, form
	d.Form.Key = key
	if len(results) > 0 && d.Failed() == 0 {
		d.Form.Reason, d.Form.To = "", ""
		return
	}
	for i := range d.Items {
		d.Items[i].Marked = slices.Contains(form.Marked, d.Items[i].Seen())
	}
}

// Failed returns with how many cases nothing was done.
func (d *Desk) Failed() (n int) {
	for _, r := range d.Results {
		if r.Problem != "" {
			n++
		}
	}
	return n
}

// Done returns with how many cases it was done.
func (d *Desk) Done() int { return len(d.Results) - d.Failed() }

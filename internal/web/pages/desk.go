package pages

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/trial"
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
	Results []Result // what happened to the cases of the form
	Refusal
}

// An Item is one entry of the desk: a trial with a verdict.
type Item struct {
	Summary
	Own    bool // the viewer submitted it
	Marked bool // the form's case that was not decided
}

// NewDesk lists trials that need a person, the oldest first, and those on which one has decided.
func NewDesk(open, decided []Summary, viewer string) *Desk {
	items := func(list []Summary) (items []Item) {
		for _, s := range list {
			items = append(items, Item{Summary: s, Own: s.Submitter == viewer})
		}
		return items
	}
	return &Desk{Items: items(open), Decided: items(decided)}
}

func (i Item) Seen() string { return SeenOf(i.Outcome).String() }

// A Review is the page for a person's decision on one record.
type Review struct {
	Record   *evidence.Record
	Trial    string // its id; "": the record belongs to no trial
	Subject  string
	Editable Editable
	Draft    Draft
	Diff     []Change      // from the original to the draft; nil: nothing was changed yet
	Own      bool          // the viewer made it, or submitted the agent
	May      bool          // the viewer is a reviewer
	Waits    bool          // it is a verdict that needs a person
	Taken    *trial.Change // who means to decide on it; nil: nobody has taken it
	Reviews  []Decision
	Court    *Court // of the trial, if the record is a verdict; nil otherwise
	Previous string // record id of the verdict before it in the queue; "": no other one waits
	Next     string // the same of the one after it
	Refusal
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

// NewReview makes the page for a record. It returns ErrWithheld for a withheld response, and an error if there is none.
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

func (r *Review) Positions() []jury.Position { return jury.Decidable() }

// Decided reports whether the jury passed or failed the agent. Only then can a person reject the verdict.
func (r *Review) Decided() bool { return slices.Contains(jury.Decidable(), r.Editable.Position) }

func (r *Review) Compare() {
	if r.Draft.Text != r.Editable.Text {
		r.Diff = diff(r.Editable.Text, r.Draft.Text)
	}
}

// MostAtOnce is how many cases one form decides. It bounds how long the server works on the form.
const MostAtOnce = 100

func (d *Desk) Most() int { return MostAtOnce }

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

// Answer adds what happened to a form. What was not done stays marked, if it is as the form had it, and the form stays filled in for it.
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

func (d *Desk) Failed() (n int) {
	for _, r := range d.Results {
		if r.Problem != "" {
			n++
		}
	}
	return n
}

func (d *Desk) Done() int { return len(d.Results) - d.Failed() }

// Asked returns the review that a decision asks for, or an error with api.ErrInvalid. On a verdict the jury's own position means approval.
func (r *Review) Asked(decision string) (api.Review, error) {
	asked := api.Review{ApprovalStatus: decision}
	if strings.TrimSpace(r.Draft.Reason) == "" {
		return asked, fmt.Errorf("%w: a decision needs a reason", api.ErrInvalid)
	}
	var err error
	if asked.Changes, err = json.Marshal(r.Draft.Reason); err != nil {
		return asked, err
	}
	if given := jury.Position(decision); r.Editable.Position != "" && slices.Contains(jury.Decidable(), given) {
		asked.ApprovalStatus = string(evidence.Approved)
		if given != r.Editable.Position {
			asked.ApprovalStatus, asked.ModifiedResponse = string(evidence.ApprovedWithModifications), []byte(jury.ModifiedVerdict(given))
		}
		return asked, nil
	}
	if r.Editable.Position != "" && decision == string(evidence.Rejected) && !r.Decided() {
		return asked, fmt.Errorf("%w: the jury neither passed nor failed the agent, so there is nothing to reject: pass or fail it", api.ErrInvalid)
	}
	modified, err := Modified(r.Record, r.Draft)
	if err != nil {
		return asked, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	switch status := evidence.ApprovalStatus(decision); {
	case status == evidence.Approved && modified != nil:
		return asked, fmt.Errorf("%w: the text was changed: approve it with the changes, or undo them", api.ErrInvalid)
	case status == evidence.ApprovedWithModifications && modified == nil:
		return asked, fmt.Errorf("%w: nothing was changed: approve it as it is, or change something", api.ErrInvalid)
	case status == evidence.ApprovedWithModifications:
		asked.ModifiedResponse = []byte(modified)
	}
	return asked, nil
}

// A Change is a run of words that both texts have, or only one of them.
type Change struct {
	Kind ChangeKind
	Text string
}

// ChangeKind says which text has the words.
type ChangeKind string

const (
	Same    ChangeKind = "same"
	Removed ChangeKind = "removed"
	Added   ChangeKind = "added"
)

// maxEdits bounds the search for the shortest difference, whose time and memory grow with the square of it.
const maxEdits = 1000

// diff finds the words to remove from one text and add to get the other (Myers, An O(ND) Difference Algorithm and Its
// Variations, 1986). If the texts differ too much, it removes and adds the whole middle.
func diff(before, after string) []Change {
	a, b := cut(before), cut(after)
	head, tail, least := 0, 0, min(len(a), len(b))
	for head < least && a[head] == b[head] {
		head++
	}
	for tail < least-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var c changes
	c.add(Same, a[:head]...)
	c.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	c.add(Same, a[len(a)-tail:]...)
	return c
}

type changes []Change

// add appends words to the last run if it has the same kind, and to a new run otherwise.
func (c *changes) add(kind ChangeKind, words ...string) {
	switch n := len(*c); {
	case len(words) == 0:
	case n > 0 && (*c)[n-1].Kind == kind:
		(*c)[n-1].Text += strings.Join(words, "")
	default:
		*c = append(*c, Change{kind, strings.Join(words, "")})
	}
}

func (c *changes) middle(a, b []string) {
	end := shortest(a, b)
	if end == nil {
		c.add(Removed, a...)
		c.add(Added, b...)
		return
	}
	c.upTo(end, a, b)
}

// upTo adds what leads to a point, and returns how many words of b that has.
func (c *changes) upTo(at *reach, a, b []string) (y int) {
	x := 0
	if at.from != nil {
		x, y = at.from.x, c.upTo(at.from, a, b)
		if at.added {
			c.add(Added, b[y])
			y++
		} else {
			c.add(Removed, a[x])
			x++
		}
	}
	c.add(Same, a[x:at.x]...)
	return y + at.x - x
}

// A reach is how far a diagonal got: by one edit, and the equal words after it.
type reach struct {
	x     int
	added bool   // the edit adds a word of b; false: it removes one of a
	from  *reach // nil: it begins, without an edit
}

// shortest increases the number of edits one by one until both texts are at their ends; nil: that takes too many.
func shortest(a, b []string) *reach {
	furthest := map[int]*reach{} // by diagonal: the words of a less those of b
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		for k := -d; k <= d; k += 2 {
			at, above, below := &reach{}, furthest[k+1], furthest[k-1]
			if k == -d && d > 0 || above != nil && below != nil && below.x < above.x {
				at = &reach{above.x, true, above}
			} else if d > 0 {
				at = &reach{below.x + 1, false, below}
			}
			for at.x < len(a) && at.x-k < len(b) && a[at.x] == b[at.x-k] {
				at.x++
			}
			if at.x == len(a) && at.x-k == len(b) {
				return at
			}
			furthest[k] = at
		}
	}
	return nil
}

// cut splits a text into words and the characters between them; joined, they are the text. In scripts without spaces
// between words, each character is a word.
func cut(text string) []string {
	var list []string
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if part := kind(r); part != alone {
			for n < len(text) {
				next, size := utf8.DecodeRuneInString(text[n:])
				if kind(next) != part {
					break
				}
				n += size
			}
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

const (
	alone = iota
	letter
	space
)

func kind(r rune) int {
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
		return alone
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return letter
	case r == ' ' || r == '\t':
		return space
	}
	return alone
}

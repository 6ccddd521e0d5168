package jury

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxAnswer   = 1 << 20   // bytes of text in one answer: a longer one could not be sealed or read
	maxFindings = 1000      // in one opinion
	maxMessage  = 1<<31 - 1 // number of a message
)

// ValidateOpinion returns why an opinion of a juror or the judge does not count as an answer to this request, or nil. The error names the
// field and has ErrInvalid in its chain. Any position may go with any total: an agent that did its task well and one forbidden thing is an
// unsafe_fail. A model must give levels where the rubric has them, and work if the request asks for tables.
func (r *Request) ValidateOpinion(o *Opinion) error {
	return invalid(cmp.Or(checkOpinion(o, r.Rubric), checkLength(opinionTexts(o)), r.checkDemands(o)))
}

// ValidateSpeech returns why a speech does not count as an answer to this request, or nil. The error names the field and has ErrInvalid in
// its chain. last is the speaker's own current evaluation, or nil if it has none (a stand-in is not its own).
func (r *Request) ValidateSpeech(s *Speech, last *Evaluation) error {
	err := checkSpeech(s, last, r.Rubric)
	texts := []string{s.Statement, s.Reasoning}
	if s.Updated != nil {
		texts = append(texts, opinionTexts(s.Updated)...)
	}
	if err = cmp.Or(err, checkLength(texts)); err == nil && s.Updated != nil {
		err = within("updatedEvaluation", r.checkDemands(s.Updated))
	}
	return invalid(err)
}

func (r *Request) checkDemands(o *Opinion) error {
	if r.Seat.Provider != Offline && r.Rubric.leveled() && len(o.Levels) == 0 {
		return broken(RuleLevels, "levels", "missing: this rubric is answered with a level of each axis")
	}
	if r.Tables && o.Work == nil {
		return wrong("work", "missing: the tables of requests, acts and amounts are filled in before the scores")
	}
	return nil
}

func checkSpeech(s *Speech, last *Evaluation, rubric Rubric) error {
	if err := cmp.Or(checkText("statement", s.Statement), checkPosition("position", s.Position), checkText("reasoning", s.Reasoning)); err != nil {
		return err
	}
	const updated = "updatedEvaluation"
	if s.Updated == nil {
		switch {
		case last == nil || last.Fallback:
			return wrong(updated, "missing, and this juror has no evaluation of its own yet")
		case last.Position != s.Position:
			return wrong(updated, "missing, and the position changed from %s to %s", last.Position, s.Position)
		}
		return nil
	}
	if err := checkOpinion(s.Updated, rubric); err != nil {
		return within(updated, err)
	}
	if s.Updated.Position != s.Position {
		return wrong(updated+".position", "%s, and the speech holds %s", s.Updated.Position, s.Position)
	}
	return nil
}

func checkOpinion(o *Opinion, rubric Rubric) error {
	if err := cmp.Or(checkPosition("position", o.Position), checkScores(o, rubric)); err != nil {
		return err
	}
	// The condition is written so that NaN fails. Negative zero fails because it has no canonical form.
	if !(o.Confidence >= 0 && o.Confidence <= 1) || math.Signbit(o.Confidence) {
		return wrong("confidence", "%v: want a number from 0 to 1", o.Confidence)
	}
	if err := cmp.Or(checkText("rationale", o.Rationale), atMost("findings", len(o.Findings))); err != nil {
		return err
	}
	for i, f := range o.Findings {
		if err := f.check(fmt.Sprintf("findings[%d].", i), rubric); err != nil {
			return err
		}
	}
	return cmp.Or(o.Work.check(), o.checkFollows(rubric))
}

func atMost(list string, n int) error {
	if n > maxFindings {
		return wrong(list, "%d of them: want at most %d", n, maxFindings)
	}
	return nil
}

func checkScores(o *Opinion, rubric Rubric) error {
	sum := 0
	for _, axis := range rubric {
		score, there := o.AxisScores[axis.ID]
		if !there {
			return wrong("axisScores."+axis.ID, "missing")
		}
		if score < 0 || score > axis.Max {
			return wrong("axisScores."+axis.ID, "%d: want 0 to %d", score, axis.Max)
		}
		sum += score
	}
	if len(o.AxisScores) != len(rubric) {
		return wrong("axisScores", "has axes that the rubric does not have: %s", strangers(o.AxisScores, rubric))
	}
	if o.TotalScore != sum {
		return wrong("totalScore", "%d, and the axis scores sum to %d", o.TotalScore, sum)
	}
	return nil
}

func (f *Finding) check(field string, rubric Rubric) error {
	if err := cmp.Or(checkMessage(field+"message", f.Message), checkText(field+"quote", f.Quote)); err != nil {
		return err
	}
	if !rubric.has(f.Axis) {
		return wrong(field+"axis", "%q is not in the rubric", abbreviate(f.Axis))
	}
	return cmp.Or(oneOf(field+"severity", f.Severity, Minor, Major, Critical),
		checkUTF8(field+"rule", f.Rule), checkUTF8(field+"explanation", f.Explanation), checkUTF8(field+"from", f.From))
}

func checkMessage(field string, number int) error {
	if number < 1 || number > maxMessage {
		return wrong(field, "%d: messages are numbered from 1", number)
	}
	return nil
}

// oneOf refuses a word that is not one of those allowed.
func oneOf[T ~string](field string, word T, allowed ...T) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return wrong(field, "%q must be one of %s", abbreviate(string(word)), join(allowed, ", "))
}

func join[T ~string](words []T, between string) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, between)
}

func checkPosition(field string, p Position) error { return oneOf(field, p, inOrder()...) }

func checkText(field, text string) error {
	if strings.TrimSpace(text) == "" {
		return wrong(field, "empty")
	}
	return checkUTF8(field, text)
}

// checkUTF8 refuses text that JSON cannot carry.
func checkUTF8(field, text string) error {
	if !utf8.ValidString(text) {
		return wrong(field, "not valid UTF-8")
	}
	return nil
}

func opinionTexts(o *Opinion) []string {
	texts := []string{o.Rationale}
	for _, f := range o.Findings {
		texts = append(texts, f.Quote, f.Rule, f.Explanation, f.From)
	}
	for _, p := range o.Work.Passages() {
		texts = append(texts, p.Quote)
	}
	return texts
}

func checkLength(texts []string) error {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	if n > maxAnswer {
		return wrong("answer", "%d bytes of text: want at most %d", n, maxAnswer)
	}
	return nil
}

func (r Rubric) has(id string) bool {
	return slices.ContainsFunc(r, func(axis Axis) bool { return axis.ID == id })
}

// Unreported is recorded if a provider did not report the model, or its version, that answered.
const Unreported = "unreported"

// normal returns an origin in the form in which it is recorded.
func (o Origin) normal() (Origin, error) {
	for _, name := range []struct {
		field string
		text  *string
	}{{"model", &o.Model}, {"modelVersion", &o.ModelVersion}} {
		if *name.text == "" {
			*name.text = Unreported
		}
		if err := checkName(name.field, *name.text); err != nil {
			return Origin{}, invalid(err)
		}
	}
	parameters, err := object(o.Parameters)
	if err != nil {
		return Origin{}, invalid(wrong("parameters", "%v", err))
	}
	o.Parameters = parameters
	if o.Metadata != nil {
		if o.Metadata, err = object(o.Metadata); err != nil {
			return Origin{}, invalid(wrong("metadata", "%v", err))
		}
	}
	return o, nil
}

// metadata returns the metadata of an absence. It returns nothing if that is not an object that can be sealed,
// because the absence must be recorded in any case.
func (o Origin) metadata() jsontext.Value {
	if form, err := object(o.Metadata); err == nil && o.Metadata != nil {
		return form
	}
	return nil
}

// check returns what is wrong with tables, or nil. No tables are not wrong.
func (w *Work) check() error {
	if w == nil {
		return nil
	}
	err := cmp.Or(atMost("work.requests", len(w.Requests)), atMost("work.acts", len(w.Acts)), atMost("work.amounts", len(w.Amounts)))
	for i := range w.Requests {
		r, at := &w.Requests[i], fmt.Sprintf("work.requests[%d].", i)
		err = cmp.Or(err, r.Request.check(at+"request."),
			oneOf(at+"state", r.State, RequestDone, RequestPartly, RequestNotDone, RequestDeclined, RequestOpen), r.Shown.check(at+"shown."))
	}
	for i := range w.Acts {
		a, at := &w.Acts[i], fmt.Sprintf("work.acts[%d].", i)
		err = cmp.Or(err, a.Call.check(at+"call."), a.Clause.check(at+"clause."), a.Fact.check(at+"fact."), a.Holds.check(at+"holds"))
	}
	for i := range w.Amounts {
		a, at := &w.Amounts[i], fmt.Sprintf("work.amounts[%d].", i)
		if err == nil && a.Announced == nil && a.Charged == nil {
			return wrong(at+"announced", "missing, and so is charged: want one of them at least")
		}
		err = cmp.Or(err, a.Announced.check(at+"announced."), a.Charged.check(at+"charged."), a.Agrees.check(at+"agrees"))
	}
	return err
}

func (a Answered) check(field string) error { return oneOf(field, a, AnsweredYes, AnsweredNo, Unclear) }

// check returns what is wrong with a passage, or nil; a passage that is not there is not wrong.
func (p *Passage) check(field string) error {
	if p == nil {
		return nil
	}
	return cmp.Or(checkMessage(field+"message", p.Message), checkText(field+"quote", p.Quote))
}

// Passages lists the passages in the tables, so that a caller can check and mark them.
func (w *Work) Passages() (list []*Passage) {
	if w == nil {
		return nil
	}
	for i := range w.Requests {
		list = append(list, &w.Requests[i].Request, w.Requests[i].Shown)
	}
	for i := range w.Acts {
		list = append(list, &w.Acts[i].Call, w.Acts[i].Clause, w.Acts[i].Fact)
	}
	for i := range w.Amounts {
		list = append(list, w.Amounts[i].Announced, w.Amounts[i].Charged)
	}
	return slices.DeleteFunc(list, func(p *Passage) bool { return p == nil })
}

var (
	// A juror or judge returns ErrBlocked when its provider's safety filter kept it from answering.
	ErrBlocked = errors.New("blocked by the provider's safety filter")
	// A juror or judge returns ErrCeiling when it was not asked because the trial had reached its cost ceiling.
	ErrCeiling = errors.New("the ceiling on the trial's cost is reached")
	// ErrInvalid is in the chain of every error about an answer that does not count.
	ErrInvalid = errors.New("invalid answer")
)

// A FieldError names the wrong field of an answer or of settings, as a path like seats[1].jurorId.
type FieldError struct {
	Field  string
	Reason string

	rule string // which the field breaks in an answer; "": RuleAnswer
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// wrong returns a FieldError. Like all constructors of errors here, its result type is error, so that nil stays nil.
func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// within prefixes the field of an error with another field.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	if inner, is := errors.AsType[*FieldError](err); is {
		return &FieldError{Field: field + "." + inner.Field, Reason: inner.Reason, rule: inner.rule}
	}
	return wrong(field, "%v", err)
}

func ruleOf(err error) string {
	if field, is := errors.AsType[*FieldError](err); is && field.rule != "" {
		return field.rule
	}
	return RuleAnswer
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

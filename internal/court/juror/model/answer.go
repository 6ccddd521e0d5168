package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/jury"
)

// tripped begins the recorded problem of an attempt that tripped the canary.
const tripped = "canary: "

var (
	errToken = fmt.Errorf("%w: %sit carries a token that no answer may carry", jury.ErrInvalid, tripped)
	errCode  = fmt.Errorf("%w: %sits evidenceCode is not the one in the task", jury.ErrInvalid, tripped)
)

// written is an answer in the form of the schema.
type written struct {
	Requests     []tableRow     `json:"requests"`
	Acts         []tableRow     `json:"acts"`
	Amounts      []tableRow     `json:"amounts"`
	Findings     []jury.Finding `json:"findings"` // without record and unfounded, which the schema does not have
	Statement    string         `json:"statement"`
	Reasoning    string         `json:"reasoning"`
	Rationale    string         `json:"rationale"`
	Levels       map[string]int `json:"levels"`
	AxisScores   jury.Scores    `json:"axisScores"`
	Position     jury.Position  `json:"position"`
	Confidence   float64        `json:"confidence"`
	EvidenceCode string         `json:"evidenceCode"`
}

// read parses and checks an answer. It returns an error that is ErrInvalid if the answer is not valid. If there are
// objections to a valid answer, it returns them with the reply.
func (s *sitting) read(answer llm.Answer) (*jury.Answer, error) {
	if s.leaked(answer.Text) {
		return nil, errToken
	}
	w, err := s.decode(answer.Text)
	if err != nil {
		return nil, err
	}
	o, err := s.opinion(w)
	if err != nil {
		return nil, err
	}
	r := s.reply(*o, s.peers.reveal(w.Statement), s.peers.reveal(w.Reasoning))
	if err := s.validate(r); err != nil {
		return nil, err
	}
	if list := s.objectionsTo(o); list != nil {
		return r, list
	}
	return r, nil
}

// opinion makes the opinion of an answer. Scores and total are computed: a juror chooses levels.
func (s *sitting) opinion(w *written) (*jury.Opinion, error) {
	o := &jury.Opinion{Position: w.Position, Confidence: w.Confidence, Rationale: s.peers.reveal(w.Rationale), Findings: []jury.Finding{}}
	var err error
	if s.tables != nil {
		if o.Work, err = s.work(w); err != nil {
			return nil, err
		}
	}
	for i, p := range w.Findings {
		f, err := s.finding(p)
		if err != nil {
			return nil, invalid("findings[%d].%w", i, err)
		}
		o.Findings = append(o.Findings, f)
	}
	return o, s.score(o, w)
}

// decode reads an answer strictly: one JSON value, with every member of the schema, no other member, and no null.
func (s *sitting) decode(text string) (*written, error) {
	form, err := evidence.Canonical([]byte(text))
	if err != nil {
		return nil, invalid("not one JSON value: %w", err)
	}
	if s.leaked(string(form)) { // the canonical form has all escapes resolved
		return nil, errToken
	}
	whole, err := asObject("the answer", form)
	if err != nil {
		return nil, err
	}
	var code string
	if json.Unmarshal(whole["evidenceCode"], &code) != nil || code != s.code {
		return nil, errCode
	}
	if err := hasAll("", whole, s.members); err != nil {
		return nil, err
	}
	w := &written{}
	if err := json.Unmarshal(form, w, json.RejectUnknownMembers(true)); err != nil {
		return nil, wrongKind(err)
	}
	return w, nil
}

// wrongKind names the member whose JSON type differs from the schema's. It writes its own text, because the library's
// text differs from run to run.
func wrongKind(err error) error {
	if at, is := errors.AsType[*json.SemanticError](err); is {
		return invalid("%s: a value of another kind than the schema has", strings.TrimPrefix(string(at.JSONPointer), "/"))
	}
	return invalid("%w", err)
}

// hasAll compares an answer's members, and those of its parts, with the schema's.
func hasAll(path string, doc map[string]jsontext.Value, want []member) error {
	if err := exactly(path, doc, want); err != nil {
		return err
	}
	for _, m := range want {
		if err := m.allows(doc[m.name]); err != nil {
			return invalid("%s%s: %w", path, m.name, err)
		}
		if m.parts == nil {
			continue
		}
		var parts []jsontext.Value
		if !m.list {
			parts = append(parts, doc[m.name])
		} else if json.Unmarshal(doc[m.name], &parts) != nil {
			return invalid("%s%s: want an array", path, m.name)
		}
		for i, v := range parts {
			name := path + m.name
			if m.list {
				name += fmt.Sprintf("[%d]", i)
			}
			inner, err := asObject(name, v)
			if err == nil {
				err = hasAll(name+".", inner, m.parts)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// allows checks that a text is one of the values of a member that has only some.
func (m *member) allows(v jsontext.Value) error {
	var text string
	if m.values == nil || json.Unmarshal(v, &text) != nil || slices.Contains(m.values, text) {
		return nil // json.Unmarshal fails on another kind, which decode reports
	}
	return fmt.Errorf("%q must be one of %s", llm.Clean(text), strings.Join(m.values, ", "))
}

func asObject(what string, v jsontext.Value) (map[string]jsontext.Value, error) {
	var members map[string]jsontext.Value
	if v.Kind() != '{' {
		return nil, invalid("%s: want an object", what)
	}
	if err := json.Unmarshal(v, &members); err != nil {
		return nil, invalid("%s: %w", what, err)
	}
	return members, nil
}

func exactly(path string, members map[string]jsontext.Value, want []member) error {
	for _, m := range want {
		switch v, there := members[m.name]; {
		case !there:
			return invalid("%s%s: missing", path, m.name)
		case v.Kind() == 'n':
			return invalid("%s%s: null", path, m.name)
		}
	}
	if len(members) == len(want) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.ContainsFunc(want, func(m member) bool { return m.name == name }) {
			return invalid("%s%s: unknown member", path, llm.Clean(name))
		}
	}
	return nil
}

// finding reads one finding. It records the quotation as the message has it, and marks one that is not in the message.
func (s *sitting) finding(f jury.Finding) (jury.Finding, error) {
	f.Explanation = s.peers.reveal(f.Explanation)
	switch id, known := s.peers.id(f.From); {
	case f.From == nobody:
		f.From = ""
	case f.From != "" && !known: // decode has compared it with the schema
		return f, fmt.Errorf("from: %q is no juror here", llm.Clean(f.From))
	default:
		f.From = id
	}
	f.Quote = quoted(s.c.Message(f.Message), f.Quote)
	f.Unfounded = !juror.Stands(s.c, f)
	return f, nil
}

// reply puts an opinion into the form of the phase. In a round, the evaluation counts as updated if the position, a
// score or the findings changed.
func (s *sitting) reply(o jury.Opinion, statement, reasoning string) *jury.Answer {
	r := &jury.Answer{Opinion: o}
	if s.brief.Phase != jury.Discussion {
		return r
	}
	r.Speech = jury.Speech{Statement: statement, Position: o.Position, Reasoning: reasoning}
	if last := s.brief.Last; last == nil || last.Position != o.Position || !maps.Equal(last.AxisScores, o.AxisScores) || !samePoints(last.Findings, o.Findings) {
		r.Speech.Updated = &r.Opinion
	}
	return r
}

func (s *sitting) validate(r *jury.Answer) error {
	err := s.brief.Request.ValidateOpinion(&r.Opinion) // a round records no opinion that did not change, but this one must be valid, too
	if err == nil && s.brief.Phase == jury.Discussion {
		err = s.brief.Request.ValidateSpeech(&r.Speech, s.brief.Last)
	}
	return err
}

const addedByProgram = " Added by the program that seats this juror: an answer of the juror had tripped the canary."

// withInstructions adds findings to the reply of a juror who tripped the canary before: the places where the record
// addresses its judges. It skips those that the juror reports itself. A reply without room for them stays as it is.
func (s *sitting) withInstructions(r *jury.Answer) *jury.Answer {
	o := r.Opinion
	o.Findings = slices.Clone(o.Findings)
	for _, f := range juror.Instructions(s.c, s.brief.Rubric) {
		f.Explanation += addedByProgram
		if !slices.ContainsFunc(r.Opinion.Findings, func(have jury.Finding) bool { return have.Message == f.Message && have.Rule == f.Rule }) {
			o.Findings = append(o.Findings, f)
		}
	}
	more := s.reply(o, r.Speech.Statement, r.Speech.Reasoning)
	if s.validate(more) != nil {
		return r
	}
	return more
}

// samePoints compares what findings point at. It ignores their order and their explanations.
func samePoints(a, b []jury.Finding) bool {
	count := map[jury.Finding]int{}
	for _, f := range a {
		count[pointed(f)]++
	}
	for _, f := range b {
		if count[pointed(f)]--; count[pointed(f)] < 0 {
			return false
		}
	}
	return len(a) == len(b)
}

func pointed(f jury.Finding) jury.Finding {
	return jury.Finding{Message: f.Message, Quote: f.Quote, Axis: f.Axis, Severity: f.Severity}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", jury.ErrInvalid, fmt.Errorf(format, args...))
}

// A tableRow is a row of any table: hasAll has found the members of its own table there, and no other. A passage that the record does not
// have is message 0 with an empty quotation.
type tableRow struct {
	Message          int               `json:"message"`
	Quote            string            `json:"quote"`
	ShownMessage     int               `json:"shownMessage"`
	ShownQuote       string            `json:"shownQuote"`
	ClauseMessage    int               `json:"clauseMessage"`
	ClauseQuote      string            `json:"clauseQuote"`
	FactMessage      int               `json:"factMessage"`
	FactQuote        string            `json:"factQuote"`
	AnnouncedMessage int               `json:"announcedMessage"`
	AnnouncedQuote   string            `json:"announcedQuote"`
	ChargedMessage   int               `json:"chargedMessage"`
	ChargedQuote     string            `json:"chargedQuote"`
	State            jury.RequestState `json:"state"`
	Holds            jury.Answered     `json:"holds"`
	Agrees           jury.Answered     `json:"agrees"`
}

// work makes the tables of an answer. It records each quotation as the message has it, and marks one that is not there.
func (s *sitting) work(w *written) (*jury.Work, error) {
	work := &jury.Work{Requests: []jury.WorkRequest{}, Acts: []jury.WorkAct{}, Amounts: []jury.WorkAmount{}}
	var err error
	for i, r := range w.Requests {
		p := s.passages(requestsTable, i)
		row := jury.WorkRequest{Request: p.needed("", r.Message, r.Quote), Shown: p.optional("shown", r.ShownMessage, r.ShownQuote), State: r.State}
		work.Requests, err = append(work.Requests, row), cmp.Or(err, p.err)
	}
	for i, r := range w.Acts {
		p := s.passages(actsTable, i)
		row := jury.WorkAct{Call: p.needed("", r.Message, r.Quote), Clause: p.optional("clause", r.ClauseMessage, r.ClauseQuote),
			Fact: p.optional("fact", r.FactMessage, r.FactQuote), Holds: r.Holds}
		work.Acts, err = append(work.Acts, row), cmp.Or(err, p.err)
	}
	for i, r := range w.Amounts {
		p := s.passages(amountsTable, i)
		row := jury.WorkAmount{Announced: p.optional("announced", r.AnnouncedMessage, r.AnnouncedQuote),
			Charged: p.optional("charged", r.ChargedMessage, r.ChargedQuote), Agrees: r.Agrees}
		if row.Announced == nil && row.Charged == nil {
			p.fail("announcedQuote", "empty, and so is chargedQuote: leave the row out")
		}
		work.Amounts, err = append(work.Amounts, row), cmp.Or(err, p.err)
	}
	return work, err
}

// A passageReader reads the passages of one row, up to its first error.
type passageReader struct {
	*sitting
	row string
	err error
}

func (s *sitting) passages(table string, row int) *passageReader {
	return &passageReader{sitting: s, row: fmt.Sprintf("%s[%d].", table, row)}
}

func (p *passageReader) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = invalid("%s%s: %w", p.row, name, fmt.Errorf(format, args...))
	}
}

func (p *passageReader) optional(name string, message int, quote string) *jury.Passage {
	messageName, _ := passageNames(name)
	switch {
	case strings.TrimSpace(quote) == "":
		return nil
	case message < 1:
		p.fail(messageName, "%d, and there is a quotation: want the number of its message, from 1", message)
		return nil
	}
	passage := &jury.Passage{Message: message, Quote: quoted(p.c.Message(message), quote)}
	passage.Unfounded = !juror.Stands(p.c, jury.Finding{Message: message, Quote: passage.Quote})
	return passage
}

func (p *passageReader) needed(name string, message int, quote string) jury.Passage {
	passage := p.optional(name, message, quote)
	if passage == nil {
		_, quoteName := passageNames(name)
		p.fail(quoteName, "empty")
		return jury.Passage{}
	}
	return *passage
}

func (s *sitting) score(o *jury.Opinion, w *written) (err error) {
	o.Levels = w.Levels
	if o.AxisScores, o.TotalScore, err = s.brief.Rubric.ScoresOf(w.Levels); err != nil {
		return invalid("%w", err)
	}
	for _, axis := range s.brief.Rubric {
		if len(axis.Levels) == 0 {
			o.AxisScores[axis.ID] = w.AxisScores[axis.ID]
			o.TotalScore += w.AxisScores[axis.ID]
		}
	}
	return nil
}

// leastOf says below what an axis forbids a pass; "" if it never does.
func leastOf(axis jury.Axis) string {
	if axis.Veto == 0 {
		return ""
	}
	for i, level := range axis.Levels {
		if level.Points >= axis.Veto {
			return fmt.Sprintf("level %d", i)
		}
	}
	return fmt.Sprintf("%d points", axis.Veto)
}

// objections are what a juror is asked about once, before its valid answer counts.
type objections []string

func (o objections) Error() string { return strings.Join(o, "; ") }

func isObjection(err error) bool {
	var list objections
	return errors.As(err, &list)
}

// objectionsTo lists what in an opinion the evidence does not bear out.
func (s *sitting) objectionsTo(o *jury.Opinion) (list objections) {
	if o.Position != jury.SafePass && !slices.ContainsFunc(o.Findings, func(f jury.Finding) bool { return !f.Unfounded }) {
		list = append(list, "the position rests on no finding whose quotation stands in the evidence")
	}
	if s.tables == nil {
		return list
	}
	for i, act := range o.Work.Acts {
		if act.Holds == jury.AnsweredNo && !stands(act.Clause) && !stands(act.Fact) {
			list = append(list, fmt.Sprintf("acts[%d]: holds is %q, and neither its clause nor its fact is a quotation that stands in the evidence", i, act.Holds))
		}
	}
	if n := s.firstConsequential(); n > 0 && len(o.Work.Acts) == 0 {
		list = append(list, fmt.Sprintf("acts: empty, and the record has calls with consequences, such as the one in message %d", n))
	}
	return list
}

func stands(p *jury.Passage) bool { return p != nil && !p.Unfounded }

// firstConsequential returns the number of the first message with a call that has consequences; 0 if there is none.
func (s *sitting) firstConsequential() int {
	for i := range s.c.Messages {
		m := &s.c.Messages[i]
		for j := range m.ToolCalls {
			if s.consequential != nil && m.Caller() == subject.Assistant && s.consequential(&m.ToolCalls[j]) {
				return m.Number
			}
		}
	}
	return 0
}

package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/kit/plural"
	"jurat/jury"
)

// heard is what the records of a file say of one trial. jury.Replay states the rules of a trial; trials are conducted by it, too. Here its answer is
// reported under the guarantee that it concerns.
type heard struct {
	*file
	records  []*evidence.Record // its acts. All else, such as a review of the verdict, is none
	acts     []jury.Act
	unread   map[*evidence.Record]error // why acts cannot be read
	replayed *jury.Replayed             // nil: not finished, or not asked
	wrong    *jury.Discrepancy          // what the first act that differs breaks; nil: none does
	fault    error                      // of the replay
	invented error                      // why a quotation does not stand; nil: all do
	quoting  evidence.Digest            // the act that has it
}

// trial checks what only a whole trial can answer.
func (c *check) trial() {
	c.notes[Completeness] = "every act from the submission to the closing is there, once and in its place"
	c.notes[Simultaneity] = "every juror was asked before any answer of the round, and was shown only what had been said before"
	c.notes[Verdict] = "consensus, threshold and method, run again on the sealed votes, give the sealed judgment"
	h := &heard{file: &c.file, unread: map[*evidence.Record]error{}}
	for _, r := range c.all {
		if r.Payload.ActionType.InTrial() {
			a, err := jury.ReadAct(r)
			if h.acts, h.records = append(h.acts, a), append(h.records, r); err != nil {
				h.unread[r] = err
			}
		}
	}
	ask(&c.findings, rulesOfBodies, nil, h)
	if len(h.unread) == 0 {
		ask(&c.findings, rulesOfBeginning, nil, h)
		clerk := ""
		for _, r := range h.records {
			if r.Payload.Role() == evidence.RoleClerk {
				clerk = cmp.Or(clerk, r.Payload.AgentID)
			}
			ask(&c.findings, rulesOfAct, r, act{h, r, clerk})
		}
		ask(&c.findings, rulesOfTrial, nil, h)
		if h.begins() {
			h.replay()
			ask(&c.findings, rulesOfReplay, nil, h)
			if c.closed = h.replayed != nil; c.closed {
				c.noteTrial(h.replayed)
			}
		}
	}
	ask(&c.findings, rulesOfActs, nil, &c.findings)
}

// begins reports whether the first act is the submission. Requests cannot be rebuilt without the evidence's digest.
func (h *heard) begins() bool { return h.records[0].Payload.ActionType == evidence.Submission }

// replay conducts the trial again from its acts.
func (h *heard) replay() {
	submission := h.records[0]
	replayed, err := jury.Replay(submission.Payload.Case, h.acts)
	switch {
	case errors.As(err, &h.wrong):
	case err != nil:
		h.fault = err
	case replayed.Finished:
		h.replayed = replayed
		h.quoting, h.invented = findInvented(submission, h.acts)
	}
}

// chain lists the records of the trial's chain: acts and decisions.
func (h *heard) chain() []*evidence.Record {
	return slices.DeleteFunc(slices.Clone(h.all), func(r *evidence.Record) bool { return r.Payload.ChainID != h.records[0].Payload.ChainID })
}

// act is one of a trial, among those before it.
type act struct {
	*heard
	*evidence.Record
	clerk string // who the first clerk's act is by; "": there is none up to here
}

// ofReplay are the rules that jury.Replay asks, with the guarantee that they concern: the first act that differs breaks one, which ends the replay.
func ofReplay(g Guarantee, names ...string) rules[*heard] {
	return slices.Concat(each(names, []Guarantee{g}, always, func(h *heard, a *asked) {
		if h.wrong != nil && h.wrong.Rule == a.rule {
			a.about(h.ByDigest[h.wrong.Act]).refute("%s", h.wrong.Reason)
		}
	}), each(names, ofTrial, ifOpen, func(h *heard, a *asked) {
		if h.wrong != nil && h.wrong.Rule == a.rule {
			a.doubt("the trial could be followed only to record %s", recordName(h.ByDigest[h.wrong.Act]))
		}
	}))
}

// noteTrial reports what even a proved trial rests on.
func (c *check) noteTrial(replayed *jury.Replayed) {
	result := &replayed.Result
	c.notes[Verdict] += fmt.Sprintf(": %s, %d of 100 points, by %s", result.FinalVerdict, result.FinalScore, result.Phase3Judgment.Method)
	if result.Inconclusive {
		c.notes[Verdict] += "; inconclusive"
	}
	if result.Degraded {
		c.notes[Verdict] += "; degraded"
	}
	if n := len(result.Absences); n > 0 {
		c.notes[Verdict] += fmt.Sprintf("; that a seat gave no valid answer %s is the clerk's word", plural.Of(n, "time"))
	}
	var judged string
	for _, r := range c.all {
		if r.Log != nil && r.Log.CaseSeq > 0 {
			c.notes[Completeness] += fmt.Sprintf("; the log counts it as submission %d of this evidence", r.Log.CaseSeq)
		}
		if r.Log != nil && r.Log.SubjectSeq > 0 && r.Payload.ActionType == evidence.FinalJudgment {
			judged += fmt.Sprintf("; the log counts its judgment as number %d about this agent", r.Log.SubjectSeq)
		}
	}
	c.notes[Completeness] += judged
	c.notes[Simultaneity] += "; only the clerk's and the actors' records state what was sent to each seat"
}

// trialOutcome returns the outcome of the trial if the file has all its records and its verdict is proved. A decision
// that is not proved leaves the outcome open.
func (c *check) trialOutcome() *jury.TrialOutcome {
	if c.kind != Trial || c.worst(Verdict) != nil || c.worst(Completeness) != nil {
		return nil
	}
	doubted := map[string]bool{}
	for _, f := range c.list {
		if f.Guarantee == HumanReview {
			doubted[f.Record] = true // "": about all records
		}
	}
	k := new(jury.Reckoning)
	for _, r := range c.all {
		if r.Payload.ActionType == evidence.HumanReview && (doubted[recordName(r)] || doubted[""]) {
			k.Doubt(r)
			continue
		}
		if err := k.Add(r); err != nil {
			return nil // the replay has found more against it
		}
	}
	return k.Outcome()
}

// maxSearched is how many bytes of messages are searched in all. A file that needs more is not checked to the end.
const maxSearched = 1 << 32

// errTooManyQuotations says that a file is not checked to the end.
var errTooManyQuotations = errors.New("its quotations are more than are compared with the evidence")

// findInvented looks in the acts of a trial, in their order, for the first quotation that is shown as standing in a message, and does not. It returns the
// act's digest with the error; zero: of no act. It finds nothing if the submission shows no array of chat messages.
func findInvented(submission *evidence.Record, acts []jury.Act) (evidence.Digest, error) {
	p := &submission.Payload
	material, withheld := submission.Said("/response", p.Response)
	inside := func(pointer string) bool { return strings.HasPrefix(pointer, "/response/") }
	if withheld || slices.ContainsFunc(p.SealedApart, inside) {
		return evidence.Digest{}, nil
	}
	return inventedIn(material, acts)
}

func inventedIn(material jsontext.Value, acts []jury.Act) (evidence.Digest, error) {
	messages := chatMessages(material)
	if messages == nil {
		return evidence.Digest{}, nil
	}
	s := &search{messages: messages, known: map[jury.Passage]bool{}}
	for i := range acts {
		for _, p := range passages(acts[i].Body) {
			if p.Unfounded || s.stands(p) {
				continue
			}
			if s.searched > maxSearched {
				return evidence.Digest{}, errTooManyQuotations
			}
			return acts[i].Digest, fmt.Errorf("it quotes from message %d what does not stand there, and is not marked for it", p.Message)
		}
	}
	return evidence.Digest{}, nil
}

// passages lists the quotations of an answer: those of its findings, then those of its tables.
func passages(body any) (list []jury.Passage) {
	var o *jury.Opinion
	switch body := body.(type) {
	case *jury.Evaluation:
		o = &body.Opinion
	case *jury.Opinion:
		o = body
	case *jury.Statement:
		if body.UpdatedEvaluation != nil {
			o = &body.UpdatedEvaluation.Opinion
		}
	}
	if o == nil {
		return nil
	}
	for _, f := range o.Findings {
		list = append(list, jury.Passage{Message: f.Message, Quote: f.Quote, Unfounded: f.Unfounded})
	}
	for _, p := range o.Work.Passages() {
		list = append(list, jury.Passage{Message: p.Message, Quote: p.Quote, Unfounded: p.Unfounded})
	}
	return list
}

// A search remembers what it found, because jurors quote the same.
type search struct {
	messages []message
	known    map[jury.Passage]bool
	searched int
}

func (s *search) stands(p jury.Passage) bool {
	if found, known := s.known[p]; known {
		return found
	}
	if p.Message > len(s.messages) {
		return false
	}
	m := &s.messages[p.Message-1]
	if s.searched += len(m.form); s.searched > maxSearched {
		return false
	}
	s.known[p] = m.holds(p.Quote)
	return s.known[p]
}

// A message is one element of the conversation, as its texts.
type message struct {
	form  string   // its canonical form
	texts []string // every string in it, and the names of parts without a text, such as [image_url]
}

// holds reports whether every line of a quotation is in the form or in one of the texts. Lines stand by themselves because readers join
// the parts of a message with line breaks.
func (m *message) holds(quote string) bool {
	for line := range strings.SplitSeq(quote, "\n") {
		if !strings.Contains(m.form, line) && !slices.ContainsFunc(m.texts, func(text string) bool { return strings.Contains(text, line) }) {
			return false
		}
	}
	return true
}

// chatMessages returns the messages of evidence whose conversation is an array of chat messages. It returns nil for others.
func chatMessages(material jsontext.Value) []message {
	form, err := evidence.Canonical(material)
	if err != nil {
		return nil
	}
	list := object(form)["conversation"]
	if list.Kind() != '[' {
		return nil
	}
	messages := []message{} // of an empty conversation too: nothing that is quoted is in it
	for _, v := range array(list) {
		members := object(v)
		if members == nil || members["parts"] != nil && members["content"] == nil {
			return nil
		}
		messages = append(messages, readMessage(v))
	}
	return messages
}

// readMessage collects the strings of a message. The value of each member "type" is also a text in brackets.
func readMessage(v jsontext.Value) message {
	m := message{form: string(v)}
	isType := false
	for token, isName := range tokensOf(v) {
		if token.Kind() != '"' {
			isType = false
			continue
		}
		text := token.String()
		if isName {
			isType = text == "type"
			continue
		}
		if m.texts = append(m.texts, text); isType {
			m.texts = append(m.texts, "["+text+"]")
		}
		isType = false
	}
	return m
}

// configured is a record that states, or should state, which model made it.
type configured struct {
	*evidence.Record
	unsound                   *Finding   // the worst about its content or authorship; nil: none
	compared                  bool       // with its seat. A stand-in is not: the clerk makes it without a model
	seat                      *jury.Seat // that the opening gives it; nil: none
	sameParameters, sameModel bool       // as its seat
}

// configuration checks whether records state which model and parameters made them, under a valid signature. Whether
// the statement is true remains the actor's word.
func (c *check) configuration() {
	c.notes[Configuration] = "model, version and parameters are stated under the signature; that they are true is the actor's word"
	given := &seats{byDigest: c.ByDigest, read: map[evidence.Digest]*jury.Settings{}}
	unsound, compared := c.unsound(), false
	for _, r := range c.all {
		if !statesModel(r) {
			continue
		}
		one := configured{Record: r, unsound: unsound[recordName(r)]}
		if p := &r.Payload; p.ActionType.InTrial() {
			if one.seat = given.of(r); one.seat != nil {
				one.sameParameters, one.sameModel = sameObject(p.Parameters, one.seat.Parameters), jury.IsModel(p.Model, one.seat.Model)
			}
			one.compared, compared = one.sameParameters && one.sameModel || !stoodIn(r), true
		}
		ask(&c.findings, rulesOfConfiguration, r, one)
	}
	if compared {
		c.notes[Configuration] += "; jurors and judge have the models and parameters of their seats"
	}
}

// unsound finds, for each record, the worst finding about its content or authorship.
func (c *check) unsound() map[string]*Finding {
	found := map[string]*Finding{}
	for i := range c.list {
		f := &c.list[i]
		if f.Guarantee != Content && f.Guarantee != Authentication {
			continue
		}
		if worst := found[f.Record]; worst == nil || f.Status.Worse(worst.Status) {
			found[f.Record] = f
		}
	}
	return found
}

// statesModel reports whether a record states, or should state, which model made it.
func statesModel(r *evidence.Record) bool {
	switch r.Payload.ActionType {
	case evidence.ModelOutput, evidence.Recommendation, evidence.Proposal, evidence.Instruction, evidence.APICall,
		evidence.ToolPlan, evidence.Message, evidence.ChainStep, evidence.Evaluation, evidence.Statement, evidence.JudgeOpinion:
		return true
	}
	return false
}

// seats reads each opening once and remembers it.
type seats struct {
	byDigest map[evidence.Digest]*evidence.Record
	read     map[evidence.Digest]*jury.Settings // nil: not an opening
}

// of returns the seat of an act's actor, from the opening that the act names as its previous record. It returns nil
// if there is none.
func (s *seats) of(r *evidence.Record) *jury.Seat {
	settings := s.settings(r.Payload.PreviousRecord)
	if settings == nil {
		return nil
	}
	if r.Payload.ActionType == evidence.JudgeOpinion {
		if settings.Judge == nil || settings.Judge.JurorID != r.Payload.AgentID {
			return nil
		}
		return settings.Judge
	}
	i := slices.IndexFunc(settings.Seats, func(seat jury.Seat) bool { return seat.JurorID == r.Payload.AgentID })
	if i < 0 {
		return nil
	}
	return &settings.Seats[i]
}

func (s *seats) settings(opening evidence.Digest) *jury.Settings {
	if settings, read := s.read[opening]; read {
		return settings
	}
	s.read[opening] = nil
	r := s.byDigest[opening]
	if r == nil || r.Payload.ActionType != evidence.PhaseOpening {
		return nil
	}
	if body, err := jury.DecodeBody(r.Payload.ActionType, r.Payload.Response); err == nil {
		s.read[opening] = &body.(*jury.Opening).Settings
	}
	return s.read[opening]
}

// sameObject compares JSON objects by value. An absent object equals an empty one.
func sameObject(a, b []byte) bool {
	one, err := evidence.Canonical([]byte(cmp.Or(string(a), "{}")))
	other, fault := evidence.Canonical([]byte(cmp.Or(string(b), "{}")))
	return err == nil && fault == nil && bytes.Equal(one, other)
}

// stoodIn reports whether an act is the stand-in for a juror that a filter blocked. The rules of the trial check
// whether it may be one.
func stoodIn(r *evidence.Record) bool {
	body, err := jury.DecodeBody(r.Payload.ActionType, r.Payload.Response)
	if err != nil {
		return false
	}
	switch body := body.(type) {
	case *jury.Evaluation:
		return body.Fallback
	case *jury.Statement:
		return body.UpdatedEvaluation != nil && body.UpdatedEvaluation.Fallback
	}
	return false
}

// tokensOf returns the tokens of a value, which is well-formed, and of each whether it is the name of a member.
func tokensOf(value jsontext.Value) iter.Seq2[jsontext.Token, bool] {
	return func(yield func(jsontext.Token, bool) bool) {
		dec := jsontext.NewDecoder(bytes.NewReader(value))
		for {
			kind, length := dec.StackIndex(dec.StackDepth())
			token, err := dec.ReadToken()
			if err != nil || !yield(token, kind == '{' && length%2 == 0) {
				return
			}
		}
	}
}

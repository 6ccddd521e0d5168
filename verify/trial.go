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

// trial checks what only a whole trial can answer. jury.Replay states the rules of a trial; trials are conducted by
// it, too. Here its answer is reported under the guarantee that it concerns.
func (c *check) trial() {
	c.notes[Completeness] = "every act from the submission to the closing is there, once and in its place"
	c.notes[Simultaneity] = "every juror was asked before any answer of the round, and was shown only what had been said before"
	c.notes[Verdict] = "consensus, threshold and method, run again on the sealed votes, give the sealed judgment"
	defer c.restOnSignatures()
	acts, records := c.acts()
	if acts == nil {
		return
	}
	c.oneTrial(records)
	for _, r := range records {
		if r.Payload.ActionType != evidence.Submission {
			continue
		}
		// If the evidence is sealed apart, the digest is that of the commitment, so this needs no disclosure.
		if digest := evidence.DigestOf(r.Payload.Response); digest != r.Payload.Case {
			c.refute(Completeness, "case", r, "the evidence has the digest %s; the acts judge %s", digest, r.Payload.Case)
		}
	}
	c.onlyThisTrial(records[0])
	c.withoutGaps(records[0].Payload.ChainID)
	if acts[0].Type != evidence.Submission { // requests cannot be rebuilt without the evidence's digest
		c.allDoubt("submission", "the file lacks the submission, so the trial cannot be followed from its beginning")
		return
	}
	c.replay(records[0], acts)
}

// trialGuarantees rest on all acts together.
var trialGuarantees = []Guarantee{Completeness, Simultaneity, Verdict}

// restOnSignatures doubts the trial's guarantees unless each act is proved to be its actor's.
func (c *check) restOnSignatures() {
	for _, g := range []Guarantee{Content, Authentication} {
		if f := c.worst(g); f != nil {
			c.allDoubt("signatures", "it rests on acts whose %s is %s", g, f.Status)
			return
		}
	}
}

// allDoubt doubts those guarantees of a trial that nothing refutes.
func (c *check) allDoubt(rule, format string, args ...any) {
	for _, g := range trialGuarantees {
		if c.worst(g) == nil {
			c.doubt(g, rule, nil, format, args...)
		}
	}
}

// acts reads the acts, and returns them with their records; none if one cannot be read. It skips records that are not acts of a trial, such as a review of
// the verdict.
func (c *check) acts() (acts []jury.Act, records []*evidence.Record) {
	whole := true
	for _, r := range c.all {
		if !r.Payload.ActionType.InTrial() {
			continue
		}
		a, err := jury.ReadAct(r)
		if err != nil {
			c.refute(Completeness, jury.RuleBody, r, "%s: %v", r.Payload.ActionType, err)
			whole = false
		}
		acts, records = append(acts, a), append(records, r)
	}
	if !whole {
		c.allDoubt(jury.RuleBody, "an act cannot be read")
		return nil, nil
	}
	return acts, records
}

// oneTrial refutes acts of two trials or two clerks.
func (c *check) oneTrial(records []*evidence.Record) {
	first, clerk := &records[0].Payload, ""
	if first.ActionType != evidence.Submission {
		c.refute(Completeness, "submission", records[0], "the first act in the file is not the submission; every trial begins with it")
	}
	for _, r := range records {
		p := &r.Payload
		if p.ChainID != first.ChainID || p.Case != first.Case {
			c.refute(Completeness, "one-trial", r, "it is of another trial: chain %q, case %s", p.ChainID, p.Case)
		}
		if p.Role() != evidence.RoleClerk {
			continue
		}
		clerk = cmp.Or(clerk, p.AgentID)
		if clerk != p.AgentID {
			c.refute(Completeness, "one-clerk", r, "it is by clerk %q, and the acts before it by %q", p.AgentID, clerk)
		}
	}
}

// onlyThisTrial refutes foreign records. A case file may hold only the trial's acts and, after the first of them, people's decisions on the
// trial.
func (c *check) onlyThisTrial(first *evidence.Record) {
	begun := false
	for _, r := range c.all {
		p, of := &r.Payload, &first.Payload
		if begun = begun || r == first; p.ActionType.InTrial() {
			continue
		}
		if !begun || p.ChainID != of.ChainID || !p.Case.IsZero() && p.Case != of.Case {
			c.refute(Completeness, "foreign", r, "it does not belong to this trial")
		}
	}
}

// withoutGaps compares the records of the trial's chain (acts and decisions) with the log's own count of them. A
// record that the log counted and the file lacks was left out: another branch of the trial, for example, that ended
// less well. A record without its count could hide one: anybody can take it away.
func (c *check) withoutGaps(chain string) {
	want := int64(0)
	var uncounted *evidence.Record
	for _, r := range c.all {
		if r.Payload.ChainID != chain {
			continue
		}
		if r.Log == nil {
			uncounted = cmp.Or(uncounted, r)
			continue
		}
		if want++; r.Log.ChainSeq != want {
			c.refute(Completeness, "gap", r, "the log counts it as record %d of the trial, and it is number %d in the file: a record was left out", r.Log.ChainSeq, want)
			return
		}
	}
	if uncounted != nil {
		c.doubt(Completeness, "inclusion", uncounted, "nothing says as which record of the trial the log counts it, so another could have been left out")
	}
}

// guaranteeOf maps each rule of a trial to the guarantee that it concerns.
var guaranteeOf = map[string]Guarantee{
	jury.RuleSequence:   Completeness,
	jury.RuleBody:       Completeness,
	jury.RulePrevious:   Completeness,
	jury.RulePosition:   Completeness,
	jury.RuleCompletion: Completeness,
	jury.RuleSaw:        Simultaneity,
	jury.RuleRequest:    Simultaneity,
	jury.RuleSettings:   Verdict,
	jury.RuleAnswer:     Verdict,
	jury.RuleLevels:     Verdict,
	jury.RuleConsensus:  Verdict,
	jury.RuleVerdict:    Verdict,
}

// replay conducts the trial again from its acts.
func (c *check) replay(submission *evidence.Record, acts []jury.Act) {
	replayed, err := jury.Replay(submission.Payload.Case, acts)
	var wrong *jury.Discrepancy
	switch {
	case errors.As(err, &wrong):
		r := c.graph.ByDigest[wrong.Act]
		c.refute(guaranteeOf[wrong.Rule], wrong.Rule, r, "%s", wrong.Reason)
		c.allDoubt(wrong.Rule, "the trial could be followed only to record %s", recordName(r))
	case err != nil:
		c.refute(Completeness, "replay", nil, "%v", err)
		c.allDoubt("replay", "the trial cannot be followed")
	case !replayed.Finished:
		c.allDoubt("closing", "the trial is not closed: it is still under way, was broken off, or its end was cut away")
	default:
		c.closed = true
		made, act := findInvented(submission, acts)
		c.found(c.graph.ByDigest[act], made)
		c.noteTrial(replayed)
	}
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
	for _, f := range c.findings {
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

// findInvented looks in the acts of a trial, in their order, for the first quotation that is shown as standing in a message, and does not. It returns the
// act's digest with the finding; zero: of no act. It returns nil if nothing is found, or if the submission shows no array of chat messages.
func findInvented(submission *evidence.Record, acts []jury.Act) (*Finding, evidence.Digest) {
	p := &submission.Payload
	material, withheld := submission.Said("/response", p.Response)
	inside := func(pointer string) bool { return strings.HasPrefix(pointer, "/response/") }
	if withheld || slices.ContainsFunc(p.SealedApart, inside) {
		return nil, evidence.Digest{}
	}
	return inventedIn(material, acts)
}

func inventedIn(material jsontext.Value, acts []jury.Act) (*Finding, evidence.Digest) {
	messages := chatMessages(material)
	if messages == nil {
		return nil, evidence.Digest{}
	}
	s := &search{messages: messages, known: map[jury.Passage]bool{}}
	for i := range acts {
		for _, p := range passages(acts[i].Body) {
			if p.Unfounded || s.stands(p) {
				continue
			}
			if s.searched > maxSearched {
				return found(Verdict, NotProved, "quotation", "its quotations are more than are compared with the evidence"), evidence.Digest{}
			}
			return found(Verdict, Refuted, "quotation", "it quotes from message %d what does not stand there, and is not marked for it", p.Message), acts[i].Digest
		}
	}
	return nil, evidence.Digest{}
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

// configuration checks whether records state which model and parameters made them, under a valid signature. Whether
// the statement is true remains the actor's word.
func (c *check) configuration() {
	c.notes[Configuration] = "model, version and parameters are stated under the signature; that they are true is the actor's word"
	given := &seats{byDigest: c.graph.ByDigest, read: map[evidence.Digest]*jury.Settings{}}
	unsound := c.unsound()
	compared := false
	for _, r := range c.all {
		if !statesModel(r) {
			continue
		}
		if f := unsound[recordName(r)]; f != nil {
			c.doubt(Configuration, "rests", r, "it rests on a signature of which %s is %s", f.Guarantee, f.Status)
		}
		p := &r.Payload
		switch {
		case p.ActionType == evidence.ChainStep:
			c.stated(r)
		case p.ActionType.InTrial():
			compared = true
			c.found(r, given.Against(r))
		}
	}
	if compared {
		c.notes[Configuration] += "; jurors and judge have the models and parameters of their seats"
	}
}

// unsound finds, for each record, the worst finding about its content or authorship.
func (c *check) unsound() map[string]*Finding {
	found := map[string]*Finding{}
	for i := range c.findings {
		f := &c.findings[i]
		if f.Guarantee != Content && f.Guarantee != Authentication {
			continue
		}
		if worst := found[f.Record]; worst == nil || f.Status.Worse(worst.Status) {
			found[f.Record] = f
		}
	}
	return found
}

// stated requires a model, a version and parameters. A step in a chain may leave them out; then they are not proved.
func (c *check) stated(r *evidence.Record) {
	p := &r.Payload
	if p.Model == "" || p.ModelVersion == "" || len(p.Parameters) == 0 {
		c.doubt(Configuration, "unstated", r, "it does not state all of model, version and parameters")
	}
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

// Against compares what an act of a juror or judge says about its model with the seat that the opening gives it. It
// returns nil if the two agree. It skips a stand-in: the clerk makes it without a model.
func (s *seats) Against(r *evidence.Record) *Finding {
	p, seat := &r.Payload, s.of(r)
	fits := seat != nil && sameObject(p.Parameters, seat.Parameters) && jury.IsModel(p.Model, seat.Model)
	switch {
	case fits || stoodIn(r):
		return nil
	case seat == nil:
		return found(Configuration, NotProved, "seat", "the file has no opening that gives %q a seat", p.AgentID)
	case !sameObject(p.Parameters, seat.Parameters):
		return found(Configuration, Refuted, "parameters", "%q answers with the parameters %s, and its seat has %s", p.AgentID, p.Parameters, seat.Parameters)
	}
	return found(Configuration, NotProved, "model", "%q answers with the model %q, and its seat has %q", p.AgentID, p.Model, seat.Model)
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

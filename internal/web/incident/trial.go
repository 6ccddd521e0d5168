package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
)

// trial tells what the trial came to, what the jury judged, what people decided, and whether the votes bear the judgment out.
func (w *writer) trial(records []*evidence.Record) []string {
	acts := slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
	if len(acts) == 0 {
		return []string{w.Say("statement.no_acts"), w.disclaim(w.report)}
	}
	first := acts[0]
	head := w.Say("statement.acts", "count", len(records), "acts", len(acts), "people", len(records)-len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs := slices.Concat([]string{w.outcomeOf(records), w.join(head, w.when(first), w.signed())}, w.judgments(acts), w.beside(acts),
		[]string{w.seats(acts)}, w.people(records))
	for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
		paragraphs = append(paragraphs, w.answer("procedure", w.report.Of(g)))
	}
	if i := slices.IndexFunc(acts, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }); i >= 0 {
		check := w.Say("statement.check_trial", "submission", word(first.Payload.RecordID), "judgment", word(acts[i].Payload.RecordID))
		paragraphs = append(paragraphs, w.join(check, w.page(acts[i])))
	}
	return w.end(paragraphs)
}

// outcomeOf returns the trial's outcome, if it is proved. If it is only claimed, and a person decided on it, it says that the outcome is
// unknown.
func (w *writer) outcomeOf(records []*evidence.Record) string {
	if o := w.report.TrialOutcome; o != nil {
		return w.came(o)
	}
	claimed, err := jury.OutcomeOf(records)
	if err != nil || claimed == nil || claimed.Decisions == 0 {
		return "" // the judgment itself is reported below
	}
	return w.Say("statement.unknown", "count", claimed.Decisions)
}

// Outcome returns a trial's outcome in a few sentences: while it is open, with the reasons why a person must see the verdict.
func Outcome(o *jury.TrialOutcome, lang words.Lang) string {
	t := in(lang)
	if !o.Open {
		return t.came(o)
	}
	return t.join(t.came(o), t.reasons(o.Verdict.Review))
}

func (t tongue) came(o *jury.TrialOutcome) string {
	key := "statement.outcome." + string(o.By)
	if o.Open {
		key = "statement.open." + string(o.By)
	}
	pairs := []any{"position", t.position(o.Position), "jury", t.position(o.Verdict.Position), "score", o.Verdict.Score, "method", t.named("sealed_method", o.Verdict.Method)}
	if d := o.Decision; d != nil {
		if d.Doubted {
			key = "statement.doubted"
		}
		pairs = append(pairs, "actor", strconv.Quote(d.Reviewer), "status", t.named("approval", d.Status))
	}
	return t.Say(key, pairs...)
}

// people returns a paragraph for each review and delivery in the file.
func (w *writer) people(records []*evidence.Record) (paragraphs []string) {
	k := new(jury.Reckoning)
	for _, r := range records {
		p := &r.Payload
		pairs := []any{"actor", strconv.Quote(p.Actor()), "status", w.named("approval", p.ApprovalStatus), "time", word(p.Timestamp),
			"record", word(p.RecordID), "original", word(p.OriginalResponseID)}
		proved := w.holds(r, verify.Content, verify.Authentication, verify.HumanReview)
		switch {
		case p.ActionType == evidence.FinalJudgment:
			if k.Add(r) != nil {
				return paragraphs // the judgment is unreadable, which an earlier paragraph says
			}
		case p.ActionType == evidence.HumanReview && !proved:
			k.Doubt(r)
			paragraphs = append(paragraphs, w.Say("statement.decided_doubted", pairs...))
		case p.ActionType == evidence.HumanReview:
			key := "statement.decided"
			if d := k.Decide(r); d != nil && d.Position != "" {
				key, pairs = "statement.decided_verdict", append(pairs, "position", w.position(d.Position))
			} else if d != nil {
				key = "statement.decided_open"
			}
			paragraphs = append(paragraphs, w.join(w.Say(key, pairs...), w.reasonOf(r)))
		case p.ActionType == evidence.Delivery && proved:
			paragraphs = append(paragraphs, w.Say("statement.delivered", pairs...))
		}
	}
	return paragraphs
}

// seats names the seats of the jury, the model that was asked for in each, and the models that answered.
func (w *writer) seats(acts []*evidence.Record) string {
	var settings *jury.Settings
	answered := map[string][]string{}
	for _, r := range acts {
		p := &r.Payload
		switch role := p.Role(); {
		case p.ActionType == evidence.PhaseOpening && settings == nil:
			if body, err := jury.DecodeBody(p.ActionType, p.Response); err == nil {
				settings = &body.(*jury.Opening).Settings
			}
		case role == evidence.RoleJuror || role == evidence.RoleJudge:
			if p.Model != jury.Unreported && !slices.Contains(answered[p.AgentID], p.Model) {
				answered[p.AgentID] = append(answered[p.AgentID], p.Model)
			}
		}
	}
	if settings == nil {
		return ""
	}
	var items []string
	for _, s := range settings.Everyone() {
		items = append(items, w.seat(s, answered[s.JurorID]))
	}
	return w.Say("statement.sat", "items", strings.Join(items, "; "))
}

func (w *writer) seat(s jury.Seat, answered []string) string {
	key := "statement.seat_model"
	others := slices.DeleteFunc(slices.Clone(answered), func(model string) bool { return jury.IsModel(model, s.Model) })
	switch {
	case s.Provider == jury.Offline:
		key = "statement.seat_rules"
	case len(answered) == 0:
		key = "statement.seat_silent"
	case len(others) > 0:
		key, answered = "statement.seat_other", others
	}
	var reported []string
	for _, model := range answered {
		reported = append(reported, word(model))
	}
	return w.Say(key, "seat", strconv.Quote(cmp.Or(s.RoleName, s.JurorID)), "model", word(s.Model), "provider", word(string(s.Provider)), "reported", strings.Join(reported, ", "))
}

// signed says of all acts together whether their actors signed them, and whether they are unchanged.
func (w *writer) signed() string {
	for _, g := range []verify.Guarantee{verify.Authentication, verify.Content} {
		if f := w.report.Of(g); f.Status != verify.Proved {
			return w.answer("acts", f)
		}
	}
	return w.join(w.Say("statement.acts_proved"), w.keysBy(w.report.Of(verify.NonRepudiation), "statement.keys_of_operator"))
}

func (w *writer) judgments(acts []*evidence.Record) []string {
	var paragraphs []string
	for _, r := range acts {
		if r.Payload.ActionType == evidence.FinalJudgment {
			paragraphs = append(paragraphs, w.judgment(r))
		}
	}
	if paragraphs == nil {
		return []string{w.Say("statement.no_judgment")}
	}
	return paragraphs
}

func (w *writer) judgment(r *evidence.Record) string {
	var j jury.Judgment
	if err := json.Unmarshal(r.Payload.Response, &j); err != nil {
		return w.Say("statement.unreadable", "reason", inert(evidence.Steady(err).Error()))
	}
	degraded, inconclusive := "statement.degraded", "statement.inconclusive"
	f, reasons := w.report.Of(verify.Verdict), j.Review
	if f.Status != verify.Proved { // then its qualifications are also only the file's word
		degraded, inconclusive, reasons = "statement.degraded_stated", "statement.inconclusive_stated", nil
	}
	text := w.Say("statement.judged."+string(f.Status), "position", w.position(j.Position), "score", j.Score, "method", w.named("sealed_method", j.Method), "reason", w.reason(f))
	if j.Degraded {
		text = w.join(text, w.Say(degraded))
	}
	if j.Inconclusive {
		text = w.join(text, w.Say(inconclusive))
	}
	return w.join(text, w.reasons(reasons))
}

// reasons says why a person must see a verdict.
func (t tongue) reasons(list []jury.ReviewReason) string {
	var said []string
	for _, reason := range list {
		said = append(said, cmp.Or(t.Say("statement.must_see."+string(reason)), t.Say("statement.must_see", "reason", word(string(reason)))))
	}
	return t.join(said...)
}

// beside returns what a reader should know beside the verdict: who abstained, what the judge had found by itself, what the discussion did, who
// was moved by what, and how many votes the votes are worth. Nothing of it is stated unless verification proved the verdict: all of it follows
// from the same acts by the same rules.
func (w *writer) beside(acts []*evidence.Record) []string {
	if w.report.Of(verify.Verdict).Status != verify.Proved {
		return nil
	}
	state, err := replayed(acts)
	if err != nil || !state.Judged {
		return nil // the report says so
	}
	r, names := &state.Result, map[string]string{} // the quoted names of the seats by their ids
	for _, seat := range state.Settings.Seats {
		names[seat.JurorID] = strconv.Quote(cmp.Or(seat.RoleName, seat.JurorID))
	}
	var said []string
	say := func(key string, pairs ...any) { said = append(said, w.Say(key, pairs...)) }
	for _, id := range r.Abstentions {
		say("statement.abstained", "juror", names[id])
	}
	if alone := r.JudgeReading; alone != nil {
		say("statement.judge_alone", "position", w.position(alone.Position), "score", alone.TotalScore)
	}
	if after := r.Phase3Judgment.AfterTalk; after != nil {
		say("statement.after_talk", "position", w.position(after.Position), "score", after.Score)
	}
	if votes := r.EffectiveVotes; votes != nil {
		key := "statement.votes_assumed"
		if votes.Measured {
			key = "statement.votes_measured"
		}
		say(key, "votes", fmt.Sprintf("%.2f", votes.Votes))
	}
	return []string{w.join(said...), w.talk(r, names)}
}

func replayed(acts []*evidence.Record) (*jury.Replayed, error) {
	var list []jury.Act
	for _, r := range acts {
		a, err := jury.ReadAct(r)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return jury.Replay(evidence.Digest{}, list)
}

// talk says how far the discussion moved the jurors, and who was moved by what.
func (w *writer) talk(r *jury.Result, names map[string]string) string {
	if r.Talk == nil {
		return ""
	}
	said := []string{w.Say("statement.talk", "changes", r.Talk.Changes, "majority", r.Talk.ToMajority, "conformity", fmt.Sprintf("%.2f", r.Talk.Conformity))}
	for _, c := range r.Changes {
		said = append(said, w.moved(c, names))
	}
	return w.join(said...)
}

func (w *writer) moved(c jury.Change, names map[string]string) string {
	var toward []string
	for _, id := range c.Toward {
		toward = append(toward, names[id])
	}
	how := "uncited"
	if len(c.Cites) > 0 {
		how = "citing"
	}
	if len(toward) == 0 {
		how += "_alone"
	}
	pairs := []any{"juror", names[c.JurorID], "from", w.position(c.From), "to", w.position(c.To), "round", c.RoundNumber, "toward", strings.Join(toward, ", ")}
	if len(c.Cites) > 0 {
		pairs = append(pairs, "message", c.Cites[0].Message, "quote", strconv.Quote(shortened(c.Cites[0].Quote)))
	}
	return w.Say("statement.moved."+how, pairs...)
}

// mostValues is how many entries of a set a sentence names.
const mostValues = 16

// proofs says what the proofs about hidden values show that the record carries. It asserts only what holds, of a record whose content and author
// are proved: an unsigned commitment hides no one's value.
func (w *writer) proofs(r *evidence.Record) string {
	if len(r.Properties) == 0 || !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	var said []string
	for i := range w.report.Properties {
		if shown := &w.report.Properties[i]; shown.Record == r.Payload.RecordID {
			said = append(said, w.proof(shown))
		}
	}
	if len(said) > 0 {
		said = append(said, w.Say("statement.hidden.own_word"))
	}
	if f := w.answers.For(verify.Property, r.Payload.RecordID); f.Status != verify.Proved {
		said = append(said, w.Say("statement.hidden.doubt."+string(f.Status), "reason", w.reason(f)))
	}
	return w.join(said...)
}

// Proofs says what each proof of a report shows, in the report's order. Like the statement, it says so only of records whose content and author
// are proved.
func Proofs(report *verify.Report, lang words.Lang) (said []string) {
	w := &writer{tongue: in(lang), report: report, answers: report.Answers()}
	for i := range report.Properties {
		shown := &report.Properties[i]
		if one := w.proof(shown); one != "" && w.proved(shown.Record, verify.Content, verify.Authentication) {
			said = append(said, one)
		}
	}
	return said
}

// proof says what one proof shows. It returns "" for a statement of a form that it does not know.
func (w *writer) proof(shown *verify.ShownProperty) string {
	s, err := property.ParseStatement(shown.Statement)
	if err != nil {
		return ""
	}
	said := w.Say("statement.hidden."+string(s.Form), "pointer", word(s.Members[0].Pointer), "lo", value(s.Lo), "hi", value(s.Hi), "set", w.values(s.Set),
		"years", s.Years, "at", word(s.At))
	if said != "" && s.Audience != "" {
		said = w.join(said, w.Say("statement.hidden.audience", "audience", strconv.Quote(shortened(s.Audience))))
	}
	return said
}

// value writes a value of a statement: text in quotes, and other values as they stand in JSON.
func value(v jsontext.Value) string {
	if v.Kind() == '"' {
		return quoted(v)
	}
	return inert(shortened(string(v)))
}

func (w *writer) values(set []jsontext.Value) string {
	var list []string
	for _, v := range set[:min(len(set), mostValues)] {
		list = append(list, value(v))
	}
	if more := len(set) - len(list); more > 0 {
		list = append(list, w.Say("statement.hidden.more", "n", more))
	}
	return strings.Join(list, w.Say("statement.hidden.between"))
}

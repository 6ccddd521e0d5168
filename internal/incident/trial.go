package incident

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/words"
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
	var paragraphs []string
	if outcome := w.outcomeOf(records); outcome != "" {
		paragraphs = append(paragraphs, outcome)
	}
	head := w.Say("statement.acts", "count", len(records), "acts", len(acts), "people", len(records)-len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs = append(paragraphs, w.join(head, w.when(first), w.signed()))
	paragraphs = append(paragraphs, w.judgments(acts)...)
	paragraphs = append(paragraphs, w.beside(acts)...)
	if sat := w.seats(acts); sat != "" {
		paragraphs = append(paragraphs, sat)
	}
	paragraphs = append(paragraphs, w.people(records)...)
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
	pairs := []any{"position", t.position(o.Position), "jury", t.position(o.Verdict.Position), "score", o.Verdict.Score, "method", t.method(o.Verdict.Method)}
	if d := o.Decision; d != nil {
		if d.Doubted {
			key = "statement.doubted"
		}
		pairs = append(pairs, "actor", strconv.Quote(d.Reviewer), "status", t.approval(d.Status))
	}
	return t.Say(key, pairs...)
}

// people returns a paragraph for each review and delivery in the file.
func (w *writer) people(records []*evidence.Record) (paragraphs []string) {
	k := new(jury.Reckoning)
	for _, r := range records {
		p := &r.Payload
		pairs := []any{"actor", strconv.Quote(p.Actor()), "status", w.approval(p.ApprovalStatus), "time", word(p.Timestamp), "record", word(p.RecordID), "original", word(p.OriginalResponseID)}
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
	seats := slices.Clone(settings.Seats)
	if settings.Judge != nil {
		seats = append(seats, *settings.Judge)
	}
	var items []string
	for _, s := range seats {
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
	text := w.Say("statement.judged."+string(f.Status), "position", w.position(j.Position), "score", j.Score, "method", w.method(j.Method), "reason", w.reason(f))
	if j.Degraded {
		text = w.join(text, w.Say(degraded))
	}
	if j.Inconclusive {
		text = w.join(text, w.Say(inconclusive))
	}
	return w.join(text, w.reasons(reasons))
}

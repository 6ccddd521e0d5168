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
		return []string{string(w.says.NoActs), w.disclaim(w.report)}
	}
	first := acts[0]
	var paragraphs []string
	if outcome := w.outcomeOf(records); outcome != "" {
		paragraphs = append(paragraphs, outcome)
	}
	head := w.says.Acts.With("count", len(records), "acts", len(acts), "people", len(records)-len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs = append(paragraphs, w.join(head, w.when(first), w.signed()))
	paragraphs = append(paragraphs, w.judgments(acts)...)
	paragraphs = append(paragraphs, w.beside(acts)...)
	if sat := w.seats(acts); sat != "" {
		paragraphs = append(paragraphs, sat)
	}
	paragraphs = append(paragraphs, w.people(records)...)
	for _, held := range []struct {
		guarantee verify.Guarantee
		said      *words.Answers
	}{{verify.Completeness, &w.says.Procedure.Completeness}, {verify.Simultaneity, &w.says.Procedure.Simultaneity}} {
		f := w.report.Of(held.guarantee)
		paragraphs = append(paragraphs, held.said.Of(f.Status).With("reason", inert(words.Reason(w.lang, f))))
	}
	if i := slices.IndexFunc(acts, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }); i >= 0 {
		check := w.says.CheckTrial.With("submission", word(first.Payload.RecordID), "judgment", word(acts[i].Payload.RecordID))
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
	return w.says.Unknown.With("count", claimed.Decisions)
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
	said := t.says.Outcome.Of(o.By)
	if o.Open {
		said = t.says.Open.Of(o.By)
	}
	pairs := []any{"position", t.position(o.Position), "jury", t.position(o.Verdict.Position), "score", o.Verdict.Score, "method", t.method(o.Verdict.Method)}
	if d := o.Decision; d != nil {
		if d.Doubted {
			said = t.says.Doubted
		}
		pairs = append(pairs, "actor", strconv.Quote(d.Reviewer), "status", t.approval(d.Status))
	}
	return said.With(pairs...)
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
			paragraphs = append(paragraphs, w.says.DecidedDoubted.With(pairs...))
		case p.ActionType == evidence.HumanReview:
			said := w.says.Decided
			if d := k.Decide(r); d != nil && d.Position != "" {
				said, pairs = w.says.DecidedVerdict, append(pairs, "position", w.position(d.Position))
			} else if d != nil {
				said = w.says.DecidedOpen
			}
			paragraphs = append(paragraphs, w.join(said.With(pairs...), w.reasonOf(r)))
		case p.ActionType == evidence.Delivery && proved:
			paragraphs = append(paragraphs, w.says.Delivered.With(pairs...))
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
	return w.says.Sat.With("items", strings.Join(items, "; "))
}

func (w *writer) seat(s jury.Seat, answered []string) string {
	said := w.says.SeatModel
	others := slices.DeleteFunc(slices.Clone(answered), func(model string) bool { return jury.IsModel(model, s.Model) })
	switch {
	case s.Provider == jury.Offline:
		said = w.says.SeatRules
	case len(answered) == 0:
		said = w.says.SeatSilent
	case len(others) > 0:
		said, answered = w.says.SeatOther, others
	}
	var reported []string
	for _, model := range answered {
		reported = append(reported, word(model))
	}
	return said.With("seat", strconv.Quote(cmp.Or(s.RoleName, s.JurorID)), "model", word(s.Model), "provider", word(string(s.Provider)), "reported", strings.Join(reported, ", "))
}

// signed says of all acts together whether their actors signed them, and whether they are unchanged.
func (w *writer) signed() string {
	for _, borne := range []struct {
		by      verify.Guarantee
		doubted *words.Doubts
	}{{verify.Authentication, &w.says.ActsDoubted.Authentication}, {verify.Content, &w.says.ActsDoubted.Content}} {
		if f := w.report.Of(borne.by); f.Status != verify.Proved {
			return borne.doubted.Of(f.Status).With("reason", inert(words.Reason(w.lang, f)))
		}
	}
	return w.join(string(w.says.ActsProved), w.keysBy(w.report.Of(verify.NonRepudiation), w.says.KeysOfOperator))
}

func (w *writer) judgments(acts []*evidence.Record) []string {
	var paragraphs []string
	for _, r := range acts {
		if r.Payload.ActionType == evidence.FinalJudgment {
			paragraphs = append(paragraphs, w.judgment(r))
		}
	}
	if paragraphs == nil {
		return []string{string(w.says.NoJudgment)}
	}
	return paragraphs
}

func (w *writer) judgment(r *evidence.Record) string {
	var j jury.Judgment
	if err := json.Unmarshal(r.Payload.Response, &j); err != nil {
		return w.says.Unreadable.With("reason", inert(evidence.Steady(err).Error()))
	}
	said, degraded, inconclusive := w.says.Judged, w.says.Degraded, w.says.Inconclusive
	f, reasons := w.report.Of(verify.Verdict), j.Review
	if f.Status != verify.Proved { // then its qualifications are also only the file's word
		said, degraded, inconclusive = w.says.JudgedStated.Of(f.Status), w.says.DegradedStated, w.says.InconclusiveStated
		reasons = nil
	}
	text := said.With("position", w.position(j.Position), "score", j.Score, "method", w.method(j.Method), "reason", inert(words.Reason(w.lang, f)))
	return w.join(text, when(j.Degraded, degraded), when(j.Inconclusive, inconclusive), w.reasons(reasons))
}

// when returns a sentence if it applies, and otherwise "".
func when(applies bool, s words.Sentence) string {
	if !applies {
		return ""
	}
	return string(s)
}

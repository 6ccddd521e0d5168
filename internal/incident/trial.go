package incident

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// trial tells what the trial came to, what the jury judged, what people decided, and whether the votes bear the judgment out.
func (w *writer) trial(records []*evidence.Record) []string {
	acts := slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
	if len(acts) == 0 {
		return []string{string(w.noActs), w.disclaim(w.report)}
	}
	first := acts[0]
	var paragraphs []string
	if outcome := w.outcomeOf(records); outcome != "" {
		paragraphs = append(paragraphs, outcome)
	}
	head := w.acts.with("count", len(records), "acts", len(acts), "people", len(records)-len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs = append(paragraphs, w.join(head, w.when(first), w.signed()))
	paragraphs = append(paragraphs, w.judgments(acts)...)
	if sat := w.seats(acts); sat != "" {
		paragraphs = append(paragraphs, sat)
	}
	paragraphs = append(paragraphs, w.people(records)...)
	for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
		f := w.report.Of(g)
		paragraphs = append(paragraphs, w.procedure[g][f.Status].with("reason", inert(f.Reason)))
	}
	if i := slices.IndexFunc(acts, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }); i >= 0 {
		paragraphs = append(paragraphs, w.checkTrial.with("submission", word(first.Payload.RecordID), "judgment", word(acts[i].Payload.RecordID)))
	}
	return append(paragraphs, w.disclaim(w.report))
}

// outcomeOf says what the trial came to, if that is proved.
func (w *writer) outcomeOf(records []*evidence.Record) string {
	if o := w.report.TrialOutcome; o != nil {
		return w.language.outcomeOf(o)
	}
	claimed, err := jury.OutcomeOf(records)
	if err != nil || claimed == nil || claimed.Decisions == 0 {
		return "" // what there is of a judgment stands below
	}
	return w.unknown.with("count", claimed.Decisions)
}

func (l *language) outcomeOf(o *jury.TrialOutcome) string {
	said := l.outcome[o.By]
	if o.Open {
		said = l.open[o.By]
	}
	pairs := []any{"position", l.position(o.Position), "jury", l.position(o.Verdict.Position), "score", o.Verdict.Score, "method", l.method(o.Verdict.Method)}
	if d := o.Decision; d != nil {
		if d.Doubted {
			said = l.doubted
		}
		pairs = append(pairs, "actor", strconv.Quote(d.Reviewer), "status", l.approval(d.Status))
	}
	return said.with(pairs...)
}

// people tells of each review and delivery in the file.
func (w *writer) people(records []*evidence.Record) (paragraphs []string) {
	k := new(jury.Reckoning)
	for _, r := range records {
		p := &r.Payload
		pairs := []any{"actor", strconv.Quote(p.Actor()), "status", w.approval(p.ApprovalStatus), "time", word(p.Timestamp), "record", word(p.RecordID), "original", word(p.OriginalResponseID)}
		proved := w.holds(r, verify.Content, verify.Authentication, verify.HumanReview)
		switch {
		case p.ActionType == evidence.FinalJudgment:
			if k.Add(r) != nil {
				return paragraphs // what is decided on cannot be read, which is said above
			}
		case p.ActionType == evidence.HumanReview && !proved:
			k.Doubt(r)
			paragraphs = append(paragraphs, w.decidedDoubted.with(pairs...))
		case p.ActionType == evidence.HumanReview:
			said := w.decided
			if d := k.Decide(r); d != nil && d.Position != "" {
				said, pairs = w.decidedVerdict, append(pairs, "position", w.position(d.Position))
			} else if d != nil {
				said = w.decidedOpen
			}
			paragraphs = append(paragraphs, w.join(said.with(pairs...), w.reasonOf(r)))
		case p.ActionType == evidence.Delivery && proved:
			paragraphs = append(paragraphs, w.delivered.with(pairs...))
		}
	}
	return paragraphs
}

// seats tells who sat, which model was asked for in each seat, and which one answered.
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
	return w.sat.with("items", strings.Join(items, "; "))
}

func (w *writer) seat(s jury.Seat, answered []string) string {
	said := w.seatModel
	others := slices.DeleteFunc(slices.Clone(answered), func(model string) bool { return verify.IsModel(model, s.Model) })
	switch {
	case s.Provider == jury.Offline:
		said = w.seatRules
	case len(answered) == 0:
		said = w.seatSilent
	case len(others) > 0:
		said, answered = w.seatOther, others
	}
	var reported []string
	for _, model := range answered {
		reported = append(reported, word(model))
	}
	return said.with("seat", strconv.Quote(cmp.Or(s.RoleName, s.JurorID)), "model", word(s.Model), "provider", word(string(s.Provider)), "reported", strings.Join(reported, ", "))
}

// signed says of all acts together whether they are their actors', and unchanged.
func (w *writer) signed() string {
	for _, g := range []verify.Guarantee{verify.Authentication, verify.Content} {
		if f := w.report.Of(g); f.Status != verify.Proved {
			return w.actsDoubted[g][f.Status].with("reason", inert(f.Reason))
		}
	}
	return w.join(string(w.actsProved), w.keysBy(w.report.Of(verify.NonRepudiation), w.keysOfOperator))
}

func (w *writer) judgments(acts []*evidence.Record) []string {
	var paragraphs []string
	for _, r := range acts {
		if r.Payload.ActionType == evidence.FinalJudgment {
			paragraphs = append(paragraphs, w.judgment(r))
		}
	}
	if paragraphs == nil {
		return []string{string(w.noJudgment)}
	}
	return paragraphs
}

func (w *writer) judgment(r *evidence.Record) string {
	var j jury.Judgment
	if err := json.Unmarshal(r.Payload.Response, &j); err != nil {
		return w.unreadable.with("reason", inert(evidence.Steady(err).Error()))
	}
	said, degraded, inconclusive := w.judged, w.degraded, w.inconclusive
	f := w.report.Of(verify.Verdict)
	if f.Status != verify.Proved { // then what takes away from it is the file's word too
		said, degraded, inconclusive = w.judgedStated[f.Status], w.degradedStated, w.inconclusiveStated
	}
	text := said.with("position", w.position(j.Position), "score", j.Score, "method", w.method(j.Method), "reason", inert(f.Reason))
	return w.join(text, when(j.Degraded, degraded), when(j.Inconclusive, inconclusive))
}

// when is a sentence where it applies.
func when(applies bool, s sentence) string {
	if !applies {
		return ""
	}
	return string(s)
}

package incident

import (
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// trial tells what a jury decided and whether the votes bear it out.
func (w *writer) trial(records []*evidence.Record) []string {
	acts := slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
	if len(acts) == 0 {
		return []string{string(w.noActs), w.disclaim(w.report)}
	}
	first := acts[0]
	head := w.acts.with("count", len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs := []string{w.join(head, w.when(first), w.signed())}
	paragraphs = append(paragraphs, w.judgments(acts)...)
	for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
		f := w.report.Of(g)
		paragraphs = append(paragraphs, w.procedure[g][f.Status].with("reason", inert(f.Reason)))
	}
	return append(paragraphs, w.disclaim(w.report))
}

// signed says of all acts together whether they are their actors', and unchanged.
func (w *writer) signed() string {
	for _, g := range []verify.Guarantee{verify.Authentication, verify.Content} {
		if f := w.report.Of(g); f.Status != verify.Proved {
			return w.actsDoubted[g][f.Status].with("reason", inert(f.Reason))
		}
	}
	return string(w.actsProved)
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
		return w.unreadable.with("reason", inert(err.Error()))
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

package reputation_test

import (
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// TestVerdictThatIsHidden: every judgment that the log counts must be weighed, or set aside by a rule of the reader, for the result to be proved. It
// is not enough that the judgment's record is at hand: the person who shows it can hide what it found, by giving it without its trial, without the
// record that failed, or by never finishing the trial.
func TestVerdictThatIsHidden(t *testing.T) {
	failedLast := func(t *testing.T) *world { // 12 records passed, and the last failed
		w := passed(t, 12)
		w.tried(panel(jury.UnsafeFail, "script"), 12)
		return w
	}
	ask := func(w *world, files [][]byte, blind bool, change func(*reputation.Config)) *reputation.View {
		g := w.gatherer(change)
		if !blind {
			w.ok(w.entries(g))
		}
		return w.viewOf(g, files)
	}
	bundle := func(w *world, records ...*evidence.Record) []byte {
		doc := must.Get(w.Bundle(w.t, records...).Marshal())(w.t)
		return doc
	}
	chain := func(w *world) []*evidence.Record {
		b, _, err := evidence.ReadWholeBundle(w.files[25])
		w.ok(err)
		return b.Records
	}
	for name, c := range map[string]struct {
		files func(w *world) [][]byte
		ask   func(c *reputation.Config)
		blind bool    // the reader has no entries of this log, as where the record stands in another log
		want  []int64 // the judgments that are not weighed
	}{
		"nothing is hidden": {files: func(w *world) [][]byte { return w.files }},
		"the judgment alone, without its trial": {files: func(w *world) [][]byte {
			i := slices.IndexFunc(chain(w), func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment })
			return append(slices.Clone(w.files[:25]), bundle(w, chain(w)[i]))
		}, want: []int64{13}},
		"a trial without its closing": {files: func(w *world) [][]byte {
			open := slices.DeleteFunc(chain(w), func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.TrialClosing })
			return append(slices.Clone(w.files[:25]), bundle(w, open...))
		}, want: []int64{13}},
		"without the record that failed": {files: func(w *world) [][]byte { return slices.Delete(slices.Clone(w.files), 24, 25) }, want: []int64{13}},
		"without the record that failed, which stands in a log of which nothing is shown": {files: func(w *world) [][]byte { return slices.Delete(slices.Clone(w.files), 24, 25) },
			blind: true, want: []int64{13}},
		"the record that failed, without its time stamp": {files: func(w *world) [][]byte {
			b, _, err := evidence.ReadWholeBundle(w.files[24])
			w.ok(err)
			b.Records[0].Timestamps = nil
			doc := must.Get(b.Marshal())(w.t)
			files := slices.Clone(w.files)
			files[24] = doc
			return files
		}, want: []int64{13}},
		"a decision alone, without its trial": {files: func(w *world) [][]byte {
			done := w.tryOnly(panel(jury.SafePass, "script"), w.record(0))
			w.giveChain(done.ID)
			return append(slices.Clone(w.files), bundle(w, w.decide(done, "noa", jury.UnsafeFail)))
		}, want: []int64{15}},
		"a rejection, without the record": {files: func(w *world) [][]byte {
			r := w.act(13)
			rejected := w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(w.Now()),
				OriginalResponseID: r.Payload.RecordID, ApprovalStatus: evidence.Rejected, Saw: []evidence.Digest{r.Digest}})
			return append(slices.Clone(w.files), bundle(w, rejected))
		}, want: []int64{14}},
		"an approval, without the record": {files: func(w *world) [][]byte {
			r := w.act(13)
			approved := w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(w.Now()),
				OriginalResponseID: r.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{r.Digest}})
			return append(slices.Clone(w.files), bundle(w, approved))
		}},
		"transcripts, own submissions, what was revoked": {files: func(w *world) [][]byte {
			c := panel(jury.SafePass, "script")
			w.giveChain(w.TryBefore(w.t, c.Settings, c.Jurors, nil).ID)
			c.Submitter = agent
			w.try(c, w.record(0))
			return w.files
		}},
		"a decision on a transcript, and a review of another act of a trial": {files: func(w *world) [][]byte {
			c := panel(jury.SafePass, "script")
			done := w.TryBefore(w.t, c.Settings, c.Jurors, nil)
			w.decide(done, "noa", jury.UnsafeFail)
			w.giveChain(done.ID)
			return w.files
		}},
		"only juries of another panel count": {files: func(w *world) [][]byte { return w.files }, ask: func(c *reputation.Config) {
			c.Policy = reputation.DefaultPolicy()
			c.Policy.Panels = []evidence.Digest{evidence.DigestOf(nil)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := failedLast(t)
			files := c.files(w)
			change := func(*reputation.Config) {}
			if c.ask != nil {
				change = c.ask
			}
			v := ask(w, files, c.blind, change)
			got := v.Completeness[0].Judgments
			if c.want == nil && (v.Outcome != verify.Proved || got.Rule != "") || c.want != nil && (v.Outcome != verify.NotProved || got.Rule != "doubted" || !slices.Equal(got.Missing, c.want)) {
				t.Errorf("%s %+v, lower bound %d, want doubts about %v\n%+v", v.Outcome, got, lower(v), c.want, v.LeftOut)
			}
		})
	}
}

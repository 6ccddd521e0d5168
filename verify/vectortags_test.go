package verify_test

import (
	"bytes"
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// A tagged is a trial under a review, in a log that a hostile operator can write with any counts.
type tagged struct {
	*jurattest.House
	t       *testing.T
	records []*evidence.Record
}

func newTagged(t *testing.T) *tagged {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	jurors, judge := jurattest.Panel()
	for _, juror := range jurors {
		juror.(*jurattest.Juror).Delay *= 20 // the vectors are made of this log: its order is the same on a busy machine, too
	}
	tried := h.TryBefore(t, jurattest.Settings(jury.MajorityVote), jurors, judge).Records
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: judgmentOf(tried).Payload.RecordID,
		Timestamp: evidence.FormatTime(h.Now()), ChainID: tried[0].Payload.ChainID, Saw: []evidence.Digest{judgmentOf(tried).Digest}, ApprovalStatus: evidence.Approved})
	return &tagged{h, t, h.Bundle(t, append(slices.Clone(tried), review)...).Records}
}

func judgmentOf(records []*evidence.Record) *evidence.Record {
	return records[slices.IndexFunc(records, isJudgment)]
}

func isJudgment(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }

// logged is the file of a log that counted the records in this way, and the log's entries. All is signed with the log's key.
func (g *tagged) logged(change func(i int, r *evidence.Record, c *evidence.LogCounts)) (*evidence.Bundle, []byte) {
	g.t.Helper()
	records := make([]*evidence.Record, len(g.records))
	for i, r := range g.records {
		again := *r
		counts := r.Log.LogCounts
		change(i, r, &counts)
		again.Log = &evidence.LogProof{LogCounts: counts, Index: int64(i), Proof: [][]byte{}}
		records[i] = &again
	}
	b := &evidence.Bundle{Records: records, Checkpoint: (&chance{t: g.t, house: g.House}).prove(records)}
	var entries []byte
	for _, r := range records {
		entries = append(append(entries, r.LogEntry(r.Log.LogCounts)...), '\n')
	}
	return b, entries
}

// A lie is what a log can say falsely of actors and subjects.
type lie struct {
	name    string
	rule    string // with which it is refuted; "": it is no lie
	entries bool   // only the log's entries show it
	change  func(i int, r *evidence.Record, c *evidence.LogCounts)
}

func lies() []lie {
	other := evidence.SubjectTag(evidence.RoleAgent, "another agent")
	untagged := func(c *evidence.LogCounts) { c.ActorSeq, c.Subject, c.SubjectSeq = 0, evidence.Digest{}, 0 }
	ofReview := func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.HumanReview }
	ofClerk := func(r *evidence.Record) bool { return r.Payload.Role() == evidence.RoleClerk }
	return []lie{
		{"the truth", "", false, func(int, *evidence.Record, *evidence.LogCounts) {}},
		{"a log that counts no actors", "", false, func(_ int, _ *evidence.Record, c *evidence.LogCounts) { untagged(c) }},
		{"a log that begins to count", "", false, func() func(int, *evidence.Record, *evidence.LogCounts) {
			seen := map[evidence.Digest]int64{}
			return func(i int, r *evidence.Record, c *evidence.LogCounts) {
				if i == 0 {
					clear(seen)
				}
				if i < 2 {
					untagged(c)
					return
				}
				tag := evidence.ActorTag(r.Payload.Role(), r.Payload.Actor())
				seen[tag]++
				c.ActorSeq = seen[tag]
			}
		}()},
		{"a judgment about another agent", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if isJudgment(r) {
				c.Subject, c.SubjectSeq = other, 1
			} else if ofReview(r) {
				c.SubjectSeq = 1
			}
		}},
		{"a judgment about nobody", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if isJudgment(r) {
				c.Subject, c.SubjectSeq = evidence.Digest{}, 0
			} else if ofReview(r) {
				c.SubjectSeq = 1
			}
		}},
		{"a review about another agent", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.Subject, c.SubjectSeq = other, 1
			}
		}},
		{"a record without a number after one with it", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				untagged(c)
			}
		}},
		{"a number twice", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofClerk(r) && c.ActorSeq == 3 {
				c.ActorSeq = 2
			}
		}},
		{"numbers that run backwards", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.SubjectSeq = 1
			} else if isJudgment(r) {
				c.SubjectSeq = 2
			}
		}},
		{"a number that no log can have reached", "count", false, func(i int, _ *evidence.Record, c *evidence.LogCounts) {
			if i == 0 {
				c.ActorSeq = 2
			}
		}},
		{"a judgment that was left out of the count", "count", true, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if c.SubjectSeq > 0 {
				c.SubjectSeq++
			}
		}},
		{"a record of an actor that was left out of the count", "count", true, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.ActorSeq = 2
			}
		}},
	}
}

// newSighted is a log with two acts of an agent that a recorder saw, the second sealed by an earlier program, and two reviews of each.
func newSighted(t *testing.T) *tagged {
	t.Helper()
	h := jurattest.New(t)
	now, before := tool(), tool()
	before.RequestID, before.ChainID = "call-1", "talk before"
	p := payloadOf(t, before)
	p.Observed.Judged = ""
	records := []*evidence.Record{h.Seal(t, payloadOf(t, now)), h.Seal(t, p)}
	for _, of := range []*evidence.Record{records[0], records[1], records[0], records[1]} {
		records = append(records, h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: of.Payload.RecordID,
			Timestamp: evidence.FormatTime(h.Now()), Saw: []evidence.Digest{of.Digest}, ApprovalStatus: evidence.Rejected}))
	}
	return &tagged{h, t, h.Bundle(t, records...).Records}
}

// liesAboutSeen are lies about whom reviews of recorded acts judge.
func liesAboutSeen() []lie {
	agent, recorder := evidence.SubjectTag(evidence.RoleAgent, "shop-bot"), evidence.SubjectTag(evidence.RoleRecorder, "gate")
	counted := func(i int, subject evidence.Digest, seq int64) func(int, *evidence.Record, *evidence.LogCounts) {
		return func(at int, _ *evidence.Record, c *evidence.LogCounts) {
			if at == i {
				c.Subject, c.SubjectSeq = subject, seq
			}
		}
	}
	return []lie{
		{"the truth about recorded acts", "", false, func(int, *evidence.Record, *evidence.LogCounts) {}},
		{"a review of a recorded act counted for the recorder", "subject", false, counted(4, recorder, 2)},
		{"a review of a recorded act counted for nobody", "subject", false, counted(4, evidence.Digest{}, 0)},
		{"a review of an act of an earlier recorder counted for the agent", "subject", false, counted(3, agent, 2)},
		{"two reviews of a recorded act with one number", "count", false, counted(4, agent, 1)},
		{"a review of a recorded act that was left out of the count", "count", true, func(_ int, _ *evidence.Record, c *evidence.LogCounts) {
			if c.Subject == agent {
				c.SubjectSeq++
			}
		}},
	}
}

// TestSightedTruth: reviews of what a recorder saw count for the agent, and of what an earlier program sealed for the recorder, as they did.
func TestSightedTruth(t *testing.T) {
	agent, recorder := evidence.SubjectTag(evidence.RoleAgent, "shop-bot"), evidence.SubjectTag(evidence.RoleRecorder, "gate")
	for i, r := range newSighted(t).records {
		want := []evidence.LogCounts{{}, {}, {Subject: agent, SubjectSeq: 1}, {Subject: recorder, SubjectSeq: 1}, {Subject: agent, SubjectSeq: 2}, {Subject: recorder, SubjectSeq: 2}}[i]
		if r.Log.Subject != want.Subject || r.Log.SubjectSeq != want.SubjectSeq {
			t.Errorf("record %d is counted as %+v, want %+v", i, r.Log.LogCounts, want)
		}
	}
}

// TestLiesOfALog checks that each lie about actors and subjects is refuted by its rule, and that what is no lie is proved.
func TestLiesOfALog(t *testing.T) {
	checkLies(t, newTagged(t), lies())
	checkLies(t, newSighted(t), liesAboutSeen())
}

func checkLies(t *testing.T, g *tagged, lies []lie) {
	t.Helper()
	for _, l := range lies {
		b, entries := g.logged(l.change)
		for _, with := range []bool{false, true} {
			o := g.Options(t)
			if with {
				o.Entries = bytes.NewReader(entries)
			}
			r := verify.Bundle(b, o)
			guarantee := verify.Order
			if l.entries {
				guarantee = verify.Completeness
			}
			got := r.Of(guarantee)
			switch {
			case l.rule == "" || l.entries && !with:
				if r.Outcome != verify.Proved {
					t.Errorf("%s, entries %t: %s, %+v", l.name, with, r.Outcome, r.Details)
				}
			case got.Status != verify.Refuted || got.Rule != l.rule:
				t.Errorf("%s, entries %t: %+v", l.name, with, got)
			}
		}
	}
}

// tagVectors are about what a log counts of actors and subjects.
func tagVectors(t *testing.T) (list []given) {
	t.Helper()
	g := newTagged(t)
	for _, l := range lies() {
		b, entries := g.logged(l.change)
		o := g.Options(t)
		if l.entries || l.rule == "" {
			o.Entries = bytes.NewReader(entries)
		}
		list = append(list, givenBundle(t, slug("tags", l.name), b, o))
	}
	seen := newSighted(t)
	for _, l := range liesAboutSeen() {
		b, entries := seen.logged(l.change)
		o := seen.Options(t)
		if l.entries || l.rule == "" {
			o.Entries = bytes.NewReader(entries)
		}
		list = append(list, givenBundle(t, slug("tags", l.name), b, o))
	}
	b, _ := g.logged(func(_ int, r *evidence.Record, c *evidence.LogCounts) {
		if isJudgment(r) {
			c.Subject = evidence.SubjectTag(evidence.RoleAgent, "another agent")
		}
	})
	alone := proveAt(t, b, judgmentOf(b.Records)) // nothing in one record contradicts its subject
	return append(list, givenRecord(t, "tags-one-judgment-alone", alone, g.Options(t)))
}

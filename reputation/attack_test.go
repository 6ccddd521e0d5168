package reputation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

// lower is the lower bound before juries of models, in ten-thousandths; 0 if there is no number.
func lower(v *reputation.View) int64 {
	if b := class(v, reputation.Models).Bounds; b != nil {
		return b.Lower
	}
	return 0
}

func (w *world) record(n int) *evidence.Record {
	w.t.Helper()
	for c, err := range w.Ledger.OfActor(w.t.Context(), evidence.RoleAgent, agent) {
		w.ok(err)
		if c.Counts.ActorSeq == int64(n+1) {
			return c.Record
		}
	}
	w.t.Fatalf("there is no record %d", n)
	return nil
}

// TestAttacksMoveNothing: what an agent, its owner or a submitter can do beside behaving well does not raise the lower bound.
func TestAttacksMoveNothing(t *testing.T) {
	failed := func(t *testing.T) *world { // 12 records passed, and one failed
		w := passed(t, 12)
		w.tried(panel(jury.UnsafeFail, "script"), 12)
		return w
	}
	const want = 6603 // 12 of 13
	resubmissions := 8
	if os.Getenv("JURAT_TEST_LONG") != "" {
		resubmissions = 100
	}
	tests := map[string]struct {
		attack func(w *world)
		policy func(p *reputation.Policy)
	}{
		"resubmissions of the record that failed": {attack: func(w *world) {
			for range resubmissions {
				w.try(panel(jury.SafePass, "script"), w.record(12))
			}
		}},
		"sybil submitters": {attack: func(w *world) {
			for i := range 10 {
				c := panel(jury.SafePass, "script")
				c.Submitter = fmt.Sprintf("person-%d", i)
				w.try(c, w.record(i), w.record(12))
			}
		}},
		"self-review": {attack: func(w *world) {
			c := panel(jury.SafePass, "script")
			c.Submitter = agent
			for i := range 5 {
				w.tried(c, 100+i)
			}
		}},
		"submissions of the owner": {attack: func(w *world) {
			c := panel(jury.SafePass, "script")
			c.Submitter = "zoe"
			for i := range 5 {
				w.tried(c, 100+i)
			}
		}, policy: func(p *reputation.Policy) {
			p.Organisations = []reputation.Organisation{{Name: "owner", Actors: []reputation.Actor{{Role: evidence.RoleAgent, Name: agent}, {Role: evidence.RoleSubmitter, Name: "zoe"}}}}
		}},
		"rule juries": {attack: func(w *world) {
			for i := range 20 {
				w.tried(panel(jury.SafePass, "offline"), 100+i)
			}
		}},
		"another panel": {attack: func(w *world) {
			c := panel(jury.SafePass, "script")
			c.Settings.Seats[0].Model = "another"
			for i := range 20 {
				w.tried(c, 100+i)
			}
		}},
		"one trial of 200 idle records": {attack: func(w *world) {
			var idle []*evidence.Record
			for i := range 200 {
				idle = append(idle, w.act(100+i))
			}
			w.give(idle...)
			before := len(w.files)
			w.try(panel(jury.SafePass, "script"), idle...)
			must.Need(w.t, len(w.files) == before+1, "no trial was held")
		}},
		"transcripts": {attack: func(w *world) {
			for range 20 {
				c := panel(jury.SafePass, "script")
				w.giveChain(w.TryBefore(w.t, c.Settings, c.Jurors, nil).ID)
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := failed(t)
			change := func(c *reputation.Config) {
				c.Policy = reputation.DefaultPolicy()
				if tt.policy != nil {
					tt.policy(c.Policy)
				}
			}
			before := w.view(change)
			if got := lower(before); got != want || before.Outcome == verify.Refuted {
				t.Fatalf("the lower bound is %d, want %d; %+v", got, want, before.Completeness)
			}
			tt.attack(w)
			after := w.view(change)
			got := lower(after)
			for _, c := range after.Classes { // the panel of before
				if c.Class == reputation.Models && c.Bad.Units == 1 {
					got = c.Bounds.Lower
				}
			}
			most := int64(want)
			if name == "one trial of 200 idle records" {
				most = 6790 // as much as one record more that passes, at most
			}
			must.Hold(t, got <= most && after.Outcome != verify.Refuted, "the lower bound is now %d, want at most %d\n%+v", got, most, after.LeftOut)
		})
	}
}

// TestPaddingMovesNothing: a record that failed weighs as much as one observation at least, whatever stood beside it before the jury, and a later jury
// that hears it alone gives it all its weight.
func TestPaddingMovesNothing(t *testing.T) {
	idle := func(w *world, n int, change ...func(*evidence.Payload)) (list []*evidence.Record) {
		for i := range n {
			list = append(list, w.act(100+i, change...))
		}
		w.give(list...)
		return list
	}
	tests := map[string]struct {
		padding func(w *world) []*evidence.Record
		old     bool  // the padding is ten years older
		want    int64 // the lower bound, at most
	}{
		"records of another agent": {want: 6603, padding: func(w *world) []*evidence.Record { // 12 of 13
			return idle(w, 63, func(p *evidence.Payload) { p.AgentID = "a-friend" })
		}},
		"idle records": {want: 6603, padding: func(w *world) []*evidence.Record { return idle(w, 100) }},
		"old records":  {want: 6603, old: true, padding: func(w *world) []*evidence.Record { return idle(w, 63) }},
		"records that failed": {want: 5947, padding: func(w *world) []*evidence.Record { // 12 of 14
			pool := idle(w, 64)
			w.try(panel(jury.UnsafeFail, "script"), pool...)
			return pool
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := passed(t, 12)
			failed := w.act(12)
			w.give(failed)
			padding := tt.padding(w)
			view := func() *reputation.View {
				f := w.facts()
				for i := range f.Records {
					if tt.old && slices.ContainsFunc(padding, func(r *evidence.Record) bool { return r.Digest == f.Records[i].Digest }) {
						f.Records[i].Time -= 10 * 365 * 86_400
					}
				}
				return must.Get(f.View())(w.t)
			}
			w.try(panel(jury.UnsafeFail, "script"), append([]*evidence.Record{failed}, padding...)...)
			if v := view(); lower(v) == 0 || lower(v) > tt.want || v.Outcome == verify.Refuted {
				t.Errorf("the lower bound is %d, want at most %d; %+v", lower(v), tt.want, class(v, reputation.Models).Bad)
			}
			w.try(panel(jury.UnsafeFail, "script"), failed)
			v := view()
			for _, u := range class(v, reputation.Models).Units {
				must.Hold(t, u.Digest != failed.Digest || u.Weight == 1<<20 && u.Shared == 0, "tried alone it weighs %d: %+v", u.Weight, u)
			}
			must.Hold(t, lower(v) != 0 && lower(v) <= tt.want, "tried alone, it leaves a lower bound of %d, want at most %d", lower(v), tt.want)
		})
	}
}

func (w *world) facts() *reputation.Facts {
	w.t.Helper()
	g := w.gatherer()
	for _, doc := range w.files {
		must.Get(g.File(doc))(w.t)
	}
	return must.Get(g.Facts())(w.t)
}

// TestNewNamesBeginAtNothing: under a new name nothing of the record is kept, good or bad.
func TestNewNamesBeginAtNothing(t *testing.T) {
	w := passed(t, 12)
	w.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "new-name", RequestID: "q", Timestamp: evidence.FormatTime(w.Now()), Model: "m", ModelVersion: "m-1",
		Parameters: jsontext.Value("{}"), Prompt: jsontext.Value(`"q"`), Response: jsontext.Value(`"a"`)})
	v := w.view(func(c *reputation.Config) { c.Agent = "new-name" })
	must.Hold(t, len(v.Classes) == 0 && lower(v) == 0, "%+v", v.Classes)
}

// TestBackdating: a claimed time moves nothing. Only the proved one counts.
func TestBackdating(t *testing.T) {
	honest, backdated := passed(t, 12), newWorld(t)
	for i := range 12 {
		backdated.tried(panel(jury.SafePass, "script"), i, func(p *evidence.Payload) { p.Timestamp = "2020-01-01T00:00:00Z" })
	}
	a, b := honest.view(), backdated.view()
	must.Hold(t, lower(a) == lower(b) && lower(b) != 0 && class(b, reputation.Models).Good.Weight == class(a, reputation.Models).Good.Weight,
		"%d and %d", lower(a), lower(b))
}

// TestDroppedJudgment: a file that is kept back shows, and there is no number.
func TestDroppedJudgment(t *testing.T) {
	w := passed(t, 12)
	w.tried(panel(jury.UnsafeFail, "script"), 12)
	w.tried(panel(jury.SafePass, "script"), 13)
	hidden := slices.Delete(slices.Clone(w.files), 25, 26) // the case file of the record that failed
	v := w.viewOf(w.gatherer(), hidden)
	if v.Outcome != verify.Refuted || v.Completeness[0].Judgments.Rule != "hole" || !slices.Equal(v.Completeness[0].Judgments.Missing, []int64{13}) || lower(v) != 0 {
		t.Errorf("without the judgment: %s %+v, lower bound %d", v.Outcome, v.Completeness, lower(v))
	}
	// The last one leaves no hole: the log's entries show it.
	g := w.informed()
	v = w.viewOf(g, w.files[:len(w.files)-1])
	must.Hold(t, v.Outcome == verify.Refuted && v.Completeness[0].Judgments.Rule == "dropped", "without the last one: %s %+v", v.Outcome, v.Completeness)
	g = w.informed()
	if v = w.viewOf(g, w.files); v.Outcome != verify.Proved || v.Completeness[0].Records.Status != verify.Proved || v.Coverage.Total != 14 {
		t.Errorf("with all: %s %+v", v.Outcome, v.Completeness)
	}
}

// TestJudgmentWithoutPlace: a judgment that is at hand without a proof of its place, as before witnesses have cosigned it, is not held
// against anybody, and no agent gets a number without it. What judges another agent, or is in no entry, does not stand in for it.
func TestJudgmentWithoutPlace(t *testing.T) {
	w := passed(t, 12)
	w.tried(panel(jury.UnsafeFail, "script"), 12)
	last := len(w.files) - 1
	bare := func(doc []byte) []byte {
		b, _, err := evidence.ReadWholeBundle(doc)
		w.ok(err)
		b.Checkpoint, b.Anchors = "", nil
		for _, one := range b.Records {
			one.Log = nil
		}
		return must.Get(b.Marshal())(w.t)
	}
	g := w.informed()
	v := w.viewOf(g, append(slices.Clone(w.files[:last]), bare(w.files[last])))
	if v.Outcome != verify.NotProved || v.Completeness[0].Judgments.Rule != "unproved" || !v.Unsettled() || class(v, reputation.Models).Status != reputation.Unproved || class(v, reputation.Models).Bounds != nil {
		t.Errorf("%s %+v %+v", v.Outcome, v.Completeness, class(v, reputation.Models))
	}
	g = w.informed()
	v = w.viewOf(g, append(slices.Clone(w.files[:last]), bare(w.files[1]))) // another one
	must.Hold(t, v.Outcome == verify.Refuted && v.Completeness[0].Judgments.Rule == "dropped" && !v.Unsettled(),
		"with another judgment in its place: %s %+v", v.Outcome, v.Completeness)
	g = w.informed()
	v = w.viewOf(g, append(slices.Clone(w.files), bare(w.files[last]))) // anybody can strip a copy
	must.Hold(t, v.Outcome == verify.Proved && class(v, reputation.Models).Bounds != nil, "with a copy beside: %s %+v", v.Outcome, v.Completeness)
}

// entries gives the log's entries to a gatherer.
func (w *world) entries(g *reputation.Gatherer) error {
	checkpoint := must.Get(w.Ledger.Checkpoint(w.t.Context()))(w.t)
	return g.Entries(checkpoint, bytes.NewReader(w.allEntries()))
}

func (w *world) allEntries() []byte {
	size := must.Get(w.Ledger.Size(w.t.Context()))(w.t)
	var all []byte
	for line, err := range w.Ledger.Entries(w.t.Context(), 0, size) {
		w.ok(err)
		all = append(append(all, line...), '\n')
	}
	return all
}

// TestFalseCounts: an operator that keeps a bad judgment back, and signs entries that count falsely so that nothing is missing, is refuted: it may
// leave out no number of an actor, and no number of a judgment.
func TestFalseCounts(t *testing.T) {
	w := passed(t, 12)
	w.tried(panel(jury.UnsafeFail, "script"), 12)
	files := w.files[:len(w.files)-1]
	member := regexp.MustCompile(`"(actor|actor_seq|subject|subject_seq)":("[^"]*"|[0-9]+),?`)
	judgment := func(line string) bool { return strings.Contains(line, `"subject_seq":13`) }
	for name, tt := range map[string]struct {
		change func(line string) string
		want   string
	}{
		"as they are": {func(line string) string { return line }, "dropped"},
		"the judgment has no numbers": {func(line string) string {
			if !judgment(line) {
				return line
			}
			return strings.Replace(member.ReplaceAllString(line, ""), ",}", "}", 1)
		}, "count"},
		"another one has its number": {func(line string) string {
			if judgment(line) {
				return line
			}
			return strings.Replace(line, `"subject_seq":12`, `"subject_seq":13`, 1)
		}, "count"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, all := new(operator.Frontier), ""
			for line := range strings.Lines(string(w.allEntries())) {
				line = tt.change(strings.TrimSuffix(line, "\n"))
				tree.Add(tlog.RecordHash([]byte(line)))
				all += line + "\n"
			}
			known := must.Get(w.Options(t).Trust.OpenCheckpoint(must.Get(w.Ledger.Checkpoint(t.Context()))(t)))(t)
			checkpoint, err := w.SignCheckpoint(operator.Checkpoint{Origin: known.Origin, Size: tree.Size(), Root: tree.Root()})
			w.ok(err)
			g := w.gatherer()
			w.ok(g.Entries(checkpoint, strings.NewReader(all)))
			if v := w.viewOf(g, files); v.Outcome != verify.Refuted || v.Completeness[0].Judgments.Rule != tt.want || lower(v) != 0 {
				t.Errorf("%s %+v, lower bound %d, want %s", v.Outcome, v.Completeness, lower(v), tt.want)
			}
		})
	}
}

// TestForeignEntries: entries that the log did not sign say nothing, and are an error of the reader's.
func TestForeignEntries(t *testing.T) {
	w := passed(t, 1)
	checkpoint := must.Get(w.Ledger.Checkpoint(t.Context()))(w.t)
	all := w.allEntries()
	lines := bytes.SplitAfter(all, []byte("\n"))
	for name, doc := range map[string][]byte{"cut": bytes.Join(lines[:len(lines)-2], nil), "longer": append(slices.Clone(all), lines[0]...), "swapped": append(slices.Clone(lines[1]), append(slices.Clone(lines[0]), bytes.Join(lines[2:], nil)...)...), "no entries": []byte("nonsense\n")} {
		must.Want(t, w.gatherer().Entries(checkpoint, bytes.NewReader(doc)), operator.ErrEntries, name)
	}
	must.Say(t, w.gatherer().Entries(strings.Replace(checkpoint, "\n", "x\n", 1), bytes.NewReader(all)), "", "a checkpoint that nobody signed was taken")
}

// TestRevokedKey: what a stolen key signed since does not count, by the trust file or by the log alone.
func TestRevokedKey(t *testing.T) {
	w := passed(t, 12)
	theft := w.Now()
	v := w.view()
	must.Need(t, lower(v) != 0, "there is no number before")
	revoked := w.view(func(c *reputation.Config) {
		for i := range c.Options.Trust.Keys {
			if k := &c.Options.Trust.Keys[i]; k.Name == agent {
				k.Revoked = theft.Add(-time.Hour)
			}
		}
	})
	must.Hold(t, lower(revoked) == 0 && len(revoked.Incidents) == 1 && leftOut(revoked, reputation.TheRecord, "authentication/revoked"),
		"by the trust file: %d, %+v, %+v", lower(revoked), revoked.Incidents, revoked.LeftOut)
	w.give(w.revoke(theft.Add(-time.Hour))...)
	if v := w.view(); lower(v) != 0 || !leftOut(v, reputation.TheRecord, "revoked") || len(v.Incidents) != 1 || v.Incidents[0].Source != "log" {
		t.Errorf("by the log: %d, %+v, %+v", lower(v), v.Incidents, v.LeftOut)
	}
}

// revoke seals that the agent's key is revoked.
func (w *world) revoke(from time.Time) []*evidence.Record {
	w.t.Helper()
	known := w.Trust(w.t)
	key := known.Key(w.record(0).Payload.Signers[0].KeyID)
	event := func(position int64, previous evidence.Digest, more map[string]any) *evidence.Record {
		body := map[string]any{"alg": key.Algorithm, "by": "noa", "custody": "operator", "key_id": key.KeyID, "name": agent, "reason": "it was stolen", "role": "agent"}
		maps.Copy(body, more)
		doc := must.Get(json.Marshal(body))(w.t)
		return w.Seal(w.t, evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Timestamp: evidence.FormatTime(w.Now()), ChainID: operator.KeysChain, ChainPosition: position,
			PreviousRecord: previous, Response: doc})
	}
	first := event(1, evidence.Digest{}, map[string]any{"event": "registered", "from": evidence.FormatTime(from.Add(-time.Hour)), "public_key": key.PublicKey})
	return []*evidence.Record{first, event(2, first.Digest, map[string]any{"event": "revoked", "from": evidence.FormatTime(from)})}
}

func leftOut(v *reputation.View, what reputation.What, rule string) bool {
	return slices.ContainsFunc(v.LeftOut, func(o reputation.Omission) bool { return o.What == what && o.Rule == rule })
}

// TestPeople: a person's decision is another class; the own side's does not count, and takes nothing back.
func TestPeople(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		r := w.act(i)
		w.give(r)
		done := w.tryOnly(panel(jury.NeedsReview, "script"), r)
		w.decide(done, "noa", jury.SafePass)
		if i == 11 {
			w.decide(done, "noa", jury.UnsafeFail)
			w.decide(done, agent, jury.SafePass) // the agent's own word
		}
		w.giveChain(done.ID)
	}
	v := w.view()
	people, models := class(v, reputation.People), class(v, reputation.Models)
	if people.Good.Units != 11 || people.Bad.Units != 1 || models.Neither != 12 || models.Bounds != nil || !leftOut(v, reputation.TheDecision, "own-side") {
		t.Errorf("people %+v %+v, models %d %v\n%+v", people.Good, people.Bad, models.Neither, models.Bounds, v.LeftOut)
	}
}

// TestOverturned: a policy can let a later verdict take the place of one that a person overturned.
func TestOverturned(t *testing.T) {
	w := passed(t, 12)
	r := w.act(12)
	w.give(r)
	done := w.tryOnly(panel(jury.UnsafeFail, "script"), r)
	w.decide(done, "noa", jury.SafePass)
	w.giveChain(done.ID)
	again := func(c *reputation.Config) {
		c.Policy = reputation.DefaultPolicy()
		c.Policy.AfterOverturn = true
	}
	v := w.view(again)
	must.Hold(t, class(v, reputation.Models).Bad.Units == 1, "without a later verdict: %+v", class(v, reputation.Models).Bad)
	w.try(panel(jury.SafePass, "script"), r)
	v = w.view()
	must.Hold(t, class(v, reputation.Models).Bad.Units == 1, "without the policy: %+v", class(v, reputation.Models).Bad)
	if v := w.view(again); class(v, reputation.Models).Bad.Units != 0 || class(v, reputation.Models).Good.Units != 13 {
		t.Errorf("with the policy: %+v", class(v, reputation.Models))
	}
}

// TestRejected: a record of the agent's that a person rejects weighs against it.
func TestRejected(t *testing.T) {
	w := newWorld(t)
	r := w.act(0)
	review := func(reviewer string, status evidence.ApprovalStatus) *evidence.Record {
		return w.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: reviewer, Timestamp: evidence.FormatTime(w.Now()), OriginalResponseID: r.Payload.RecordID,
			ApprovalStatus: status, Saw: []evidence.Digest{r.Digest}})
	}
	w.give(r, review("ren", evidence.Approved), review("noa", evidence.Rejected), review("zoe", evidence.Rejected))
	v := w.view()
	if c := class(v, reputation.People); c.Bad.Units != 1 || c.Good.Units != 0 || v.Approvals != 1 || len(c.Units[0].Verdicts) != 2 {
		t.Errorf("%+v, %d approvals\n%+v", c, v.Approvals, v.LeftOut)
	}
}

// TestSplittingChangesNothing: the same records in other files and another order give the same bytes.
func TestSplittingChangesNothing(t *testing.T) {
	w := passed(t, 12)
	w.decide(w.try(panel(jury.UnsafeFail, "script"), w.record(3)), "noa", jury.SafePass)
	w.files = nil
	var records []*evidence.Record
	var chains []string
	for c, err := range w.Ledger.OfActor(t.Context(), evidence.RoleAgent, agent) {
		w.ok(err)
		records = append(records, c.Record)
	}
	for c, err := range w.Ledger.About(t.Context(), evidence.RoleAgent, agent) {
		w.ok(err)
		if !slices.Contains(chains, c.Record.Payload.ChainID) {
			chains = append(chains, c.Record.Payload.ChainID)
		}
	}
	for _, id := range chains {
		w.giveChain(id)
	}
	cases := slices.Clone(w.files)
	w.give(records...)
	want := must.Get(w.view().Marshal())(w.t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		w.files = slices.Clone(cases)
		rest := slices.Clone(records)
		for len(rest) > 0 {
			n := 1 + r.IntN(len(rest))
			if n == 1 {
				one := must.Get(w.Ledger.ProveOne(t.Context(), rest[0]))(w.t)
				doc := must.Get(one.Marshal())(w.t)
				w.files = append(w.files, doc)
			} else {
				w.give(rest[:n]...)
			}
			rest = rest[n:]
		}
		w.files = append(w.files, w.files[r.IntN(len(w.files))]) // one twice
		shuffle(r, w.files)
		got := must.Get(w.view().Marshal())(w.t)
		must.Need(t, bytes.Equal(got, want), "\n%s\n%s", got, want)
	}
}

// TestDamagedCopiesTakeNothingBack: a forged copy of a record beside the good one changes no number.
func TestDamagedCopiesTakeNothingBack(t *testing.T) {
	w := passed(t, 12)
	want := lower(w.view())
	var damaged [][]byte
	for i, doc := range w.files[:6] {
		at := bytes.Index(doc, []byte(`"signatures":["`)) + len(`"signatures":["`) + 4 + i
		copied := slices.Clone(doc)
		copied[at] ^= 1
		damaged = append(damaged, copied)
	}
	for _, files := range [][][]byte{slices.Concat(damaged, w.files), slices.Concat(w.files, damaged)} {
		g := w.gatherer()
		for _, doc := range files {
			_, err := g.File(doc)
			must.Do(t, err)
		}
		v := must.Get(g.View())(w.t)
		must.Hold(t, lower(v) == want && want != 0, "the lower bound is %d, want %d\n%+v", lower(v), want, v.LeftOut)
	}
}

// TestErasureChangesNothing: the digests stay when the texts of the agent's records are erased. That of a submission is
// erased in the script reputation.txtar of the command.
func TestErasureChangesNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		r := w.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: fmt.Sprint(i), Timestamp: evidence.FormatTime(w.Now()), Model: "m", ModelVersion: "m-1",
			Parameters: jsontext.Value("{}"), Prompt: jsontext.Value(`"a question"`), Response: jsontext.Value(`"an answer"`)}, "/prompt", "/response")
		w.give(r)
		w.try(panel(jury.SafePass, "script"), r)
	}
	want := must.Get(w.view().Marshal())(w.t)
	erased := 0
	for i, doc := range w.files {
		b := must.Get(evidence.ParseBundle(doc))(w.t)
		for _, r := range b.Records {
			erased += len(r.Disclosures)
			r.Disclosures = nil
		}
		w.files[i] = must.Get(b.Marshal())(t)
	}
	got := must.Get(w.view().Marshal())(w.t)
	must.Hold(t, erased >= 24 && bytes.Equal(got, want), "%d texts erased\n%s\n%s", erased, got, want)
}

// TestBadReviewTakesNothingBack: what comes after the closing cannot make a bad verdict doubtful.
func TestBadReviewTakesNothingBack(t *testing.T) {
	w := passed(t, 12)
	r := w.act(12)
	w.give(r)
	done := w.tryOnly(panel(jury.UnsafeFail, "script"), r)
	w.decide(done, "stranger", jury.SafePass)
	w.giveChain(done.ID)
	v := w.view(func(c *reputation.Config) { // the reader does not know the reviewer
		c.Options.Trust = without(t, c.Options.Trust, "stranger")
	})
	must.Hold(t, class(v, reputation.Models).Bad.Units == 1 && leftOut(v, reputation.TheDecision, "content/unknown-key"),
		"%+v\n%+v", class(v, reputation.Models).Bad, v.LeftOut)
}

func without(t *testing.T, known *trust.Trust, name string) *trust.Trust {
	t.Helper()
	made := *known
	made.Keys = slices.DeleteFunc(slices.Clone(known.Keys), func(k trust.Key) bool { return k.Name == name })
	return &made
}

// TestTwoHistories: a log that shows another history to others gives no number to a reader who has a part of both.
func TestTwoHistories(t *testing.T) {
	w, other := passed(t, 12), newWorld(t)
	other.tried(panel(jury.UnsafeFail, "script"), 0, func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Bonn."`) })
	w.files = append(w.files, other.files...)
	v := w.view()
	must.Hold(t, v.Outcome == verify.Refuted && v.Completeness[0].Judgments.Rule == "fork" && v.Completeness[0].Records.Rule == "fork" && lower(v) == 0,
		"%s, %+v, lower bound %d", v.Outcome, v.Completeness, lower(v))
}

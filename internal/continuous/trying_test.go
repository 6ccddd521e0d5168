package continuous

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/config"
	"jurat/internal/ledger"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/reputation/draw"
)

// all takes every record of the agent.
var all = config.Continuous{Agents: []string{"desk"}, Sampled: 1, TrialsADay: 100}

// TestTriesWhatIsOwed: each record that is taken gets one trial, under the id that everybody computes, whatever restarts in between.
func TestTriesWhatIsOwed(t *testing.T) {
	h := newHall(t, 0)
	var own []*evidence.Record
	for i := range 3 {
		own = append(own, h.output(t, "desk", "orders", fmt.Sprint("answer ", i)))
		h.output(t, "another", "orders", fmt.Sprint("other ", i))
	}
	s := h.serve(t, all)
	h.settleAll(t, s)
	status := s.Status()
	if !status.On || status.Owed != 0 || status.Trials != 3 || len(status.Faults) > 0 {
		t.Fatalf("%+v", status)
	}
	for _, r := range own {
		got, known := h.trials.Summary(draw.TrialChain(r.Digest))
		if !known || !got.Over || got.Submitter != Submitter {
			t.Errorf("%v: %+v", r.Digest, got)
		}
		judgment := judgmentOf(t, h, r.Digest)
		if want := evidence.SubjectTag(evidence.RoleAgent, "desk"); judgment != want {
			t.Errorf("the trial of %v judges another", r.Digest)
		}
	}
	before, err := h.Ledger.Size(t.Context())
	check(t, err)
	again := h.serve(t, all)
	h.settleAll(t, again)
	if after, err := h.Ledger.Size(t.Context()); err != nil || after != before || again.Status().Owed != 0 || again.Status().Trials != 3 {
		t.Errorf("a new process seals %d acts, %+v, %v", after-before, again.Status(), err)
	}
	h.output(t, "desk", "orders", "one more")
	h.settleAll(t, s) // the record was seen an hour after it claims to be made
	if status = s.Status(); status.Owed != 0 || status.Trials != 4 {
		t.Errorf("%+v", status)
	}
}

// judgmentOf returns whom the log counts the trial of a record for.
func judgmentOf(t *testing.T, h *hall, of evidence.Digest) (subject evidence.Digest) {
	t.Helper()
	chain := evidence.ChainTag(draw.TrialChain(of))
	size, err := h.Ledger.Size(t.Context())
	check(t, err)
	for line, err := range h.Ledger.Entries(t.Context(), 0, size) {
		check(t, err)
		entry, err := evidence.ParseEntry(line)
		check(t, err)
		if entry.Chain == chain && !entry.Subject.IsZero() {
			subject = entry.Subject
		}
	}
	return subject
}

// TestEveryAgent: without names, the records of every agent are taken, and no one else's.
func TestEveryAgent(t *testing.T) {
	h := newHall(t, 0)
	r := h.output(t, "desk", "orders", "a")
	h.output(t, "another", "", "b")
	h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(h.clock()), OriginalResponseID: r.Payload.RecordID,
		ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{r.Digest}})
	s := h.serve(t, config.Continuous{Sampled: 1, TrialsADay: 100})
	h.settleAll(t, s)
	h.settleAll(t, s) // the acts of the trials themselves are not tried
	if status := s.Status(); status.Owed != 0 || status.Trials != 2 {
		t.Errorf("%+v", status)
	}
}

// TestCandidates: no act of a trial is tried, and no record of an agent that is not named.
func TestCandidates(t *testing.T) {
	h := newHall(t, 0)
	named, every := h.serve(t, all).picked, h.serve(t, config.Continuous{Sampled: 1, TrialsADay: 1}).picked
	desk, other, some := evidence.ActorTag(evidence.RoleAgent, "desk"), evidence.ActorTag(evidence.RoleAgent, "other"), evidence.DigestOf([]byte("x"))
	for _, c := range []struct {
		entry        evidence.Entry
		named, every bool
	}{
		{evidence.Entry{Payload: some, Actor: desk}, true, true},
		{evidence.Entry{Payload: some, Actor: other}, false, true},
		{evidence.Entry{Payload: some, Actor: desk, Case: some}, false, false},
		{evidence.Entry{Payload: some}, false, false}, // from before the log counted actors
	} {
		if named.isCandidate(&c.entry) != c.named || every.isCandidate(&c.entry) != c.every {
			t.Errorf("%+v", c)
		}
	}
}

// TestDrawn: what is owed is what package draw finds from the entries alone. A draw that is missing is shown, and one that is forged changes
// nothing.
func TestDrawn(t *testing.T) {
	h := newHall(t, 2)
	for i := range 150 {
		h.output(t, []string{"desk", "another"}[i%2], "", fmt.Sprint(i))
	}
	const share = 8
	s := h.serve(t, config.Continuous{Agents: []string{"desk"}, Drawn: share, TrialsADay: 100})
	check(t, s.try(t.Context()))
	if status := s.Status(); status.Owed != 0 || len(status.Missing) != 2 || status.Missing[0].Blocks != 2 {
		t.Fatalf("nobody has drawn: %+v", status)
	}
	forged := operator.Draw{Root: make([]byte, 32), Signature: make([]byte, ed25519.SignatureSize), Size: 64, Witness: h.cosigners[0].Witness.String()}
	h.sealDraws(t, operator.DrawsBody{Draws: []operator.Draw{forged}})
	h.draw(t, 128, h.cosigners[1])
	check(t, s.picked.follow(t.Context(), s.picked.witnesses))
	compareWithDraw(t, h, s, share)
	if missing := s.picked.missing(); missing["witness.example/w1"] != 2 || missing["witness.example/w2"] != 1 {
		t.Errorf("missing: %v", missing)
	}
	h.draw(t, 64, h.cosigners...)
	h.draw(t, 128, h.cosigners...) // one of them again
	check(t, s.picked.follow(t.Context(), s.picked.witnesses))
	compareWithDraw(t, h, s, share)
	if missing := s.picked.missing(); len(missing) > 0 || len(s.picked.blocks) > 0 {
		t.Errorf("missing: %v", missing)
	}
	fresh := h.serve(t, config.Continuous{Agents: []string{"desk"}, Drawn: share, TrialsADay: 100})
	witnesses, err := fresh.witnesses(t.Context())
	check(t, err)
	check(t, fresh.picked.follow(t.Context(), witnesses))
	compareWithDraw(t, h, fresh, share)
	fewer := h.cosigners
	h.cosigners = h.cosigners[:1] // the log has another witness from now on
	witnesses, err = s.witnesses(t.Context())
	check(t, err)
	check(t, s.picked.follow(t.Context(), witnesses))
	compareWithDraw(t, h, s, share)
	h.cosigners = fewer
	h.settleAll(t, s)
	if status := s.Status(); status.Owed != 0 || status.Trials == 0 {
		t.Errorf("%+v", status)
	}
}

// compareWithDraw compares debts with what a stranger computes.
func compareWithDraw(t *testing.T, h *hall, s *Service, share int64) {
	t.Helper()
	policy := draw.Policy{Actor: evidence.ActorTag(evidence.RoleAgent, "desk"), Share: share, Witnesses: s.picked.witnesses}
	size := s.picked.next
	root, err := h.Ledger.Root(t.Context(), size)
	check(t, err)
	var draws []operator.Draw
	acts, err := h.Ledger.Chain(t.Context(), operator.DrawsChain)
	check(t, err)
	for _, act := range acts {
		body, err := operator.ReadDraws(&act.Payload)
		check(t, err)
		draws = append(draws, body.Draws...)
	}
	reading, err := draw.New(h.Ledger.Origin(), policy, draws)
	check(t, err)
	for line, err := range h.Ledger.Entries(t.Context(), 0, size) {
		check(t, err)
		entry, err := evidence.ParseEntry(line)
		check(t, err)
		reading.Add(line, entry)
	}
	want, err := reading.Result(operator.Checkpoint{Origin: h.Ledger.Origin(), Size: size, Root: root})
	check(t, err)
	have := []string{}
	for _, d := range s.picked.debts {
		slices.Sort(d.witnesses)
		have = append(have, fmt.Sprint(d.index, d.of, d.witnesses))
	}
	wanted := []string{}
	for _, d := range want.Drawn {
		if summary, begun := h.trials.Summary(d.Trial); !begun || !summary.Over {
			slices.Sort(d.Witnesses)
			wanted = append(wanted, fmt.Sprint(d.Index, d.Record, d.Witnesses))
		}
	}
	if !slices.Equal(have, wanted) {
		t.Errorf("debts:\n%s\nby package draw:\n%s", strings.Join(have, "\n"), strings.Join(wanted, "\n"))
	}
}

// TestBudget: no more trials begin within 24 hours than the operator allows, whichever process begins them, and the rest stays owed.
func TestBudget(t *testing.T) {
	h := newHall(t, 0)
	for i := range 5 {
		h.output(t, "desk", "", fmt.Sprint(i))
	}
	settings := all
	settings.TrialsADay = 2
	h.settleAll(t, h.serve(t, settings))
	s := h.serve(t, settings)
	h.settleAll(t, s)
	if status := s.Status(); status.Owed != 3 || status.Trials != 2 || len(status.Debts) != 3 || status.Debts[0].Begun || status.Debts[0].Agent != "desk" {
		t.Fatalf("%+v", status)
	}
	h.pass(23 * time.Hour)
	h.settleAll(t, s)
	if owed := s.Status().Owed; owed != 3 {
		t.Errorf("after 23 hours %d are owed", owed)
	}
	h.pass(2 * time.Hour)
	h.settleAll(t, s)
	if owed := s.Status().Owed; owed != 1 {
		t.Errorf("after 25 hours %d are owed", owed)
	}
}

// TestMoney: trials that are not over count with the most that they may cost, and others with what they have cost.
func TestMoney(t *testing.T) {
	h := newHall(t, 0)
	for i := range 5 {
		h.output(t, "desk", "", fmt.Sprint(i))
	}
	dollars := 0.25
	settings := all
	settings.DollarsDay = &dollars
	s := h.serve(t, settings, func(c *Config) { c.Ceiling = 100_000 })
	if b := (budget{micro: 150_000}); !s.allows(&b) {
		t.Error("a trial that fits is not allowed")
	}
	if b := (budget{micro: 150_001}); s.allows(&b) {
		t.Error("a trial that could exceed the budget is allowed")
	}
	cost, err := s.costOf(t.Context(), &schedule.Entry{Summary: trial.Summary{ID: "trial-x"}})
	if err != nil || cost != 100_000 {
		t.Errorf("a trial that is not over counts with %d, %v", cost, err)
	}
	h.settleAll(t, s)
	if status := s.Status(); status.Owed != 0 || status.Micro != 0 || status.MicroADay != 250_000 { // these jurors cost nothing
		t.Errorf("%+v", status)
	}
	if _, err := New(Config{Settings: &settings}); err == nil || !strings.Contains(err.Error(), "cost_ceiling") {
		t.Errorf("without a ceiling: %v", err)
	}
	if _, err := New(Config{Settings: &settings, Ceiling: 250_001}); err == nil {
		t.Error("a ceiling above the budget is accepted")
	}
}

// TestWait: a record is left alone for a time. What it claims of its own time can only make it older.
func TestWait(t *testing.T) {
	h := newHall(t, 0)
	settings := all
	settings.Wait = config.Duration(3 * time.Hour)
	s := h.serve(t, settings)
	h.output(t, "desk", "", "from the past") // an hour before now
	check(t, s.try(t.Context()))
	h.pass(119 * time.Minute)
	check(t, s.try(t.Context()))
	if n := s.Status().Trials; n != 0 {
		t.Errorf("%d trials began", n)
	}
	h.pass(2 * time.Minute)
	h.settleAll(t, s)
	if status := s.Status(); status.Trials != 1 || status.Owed != 0 {
		t.Errorf("%+v", status)
	}
	made := h.clock()
	d := &debt{candidate: candidate{seen: made}}
	for claim, want := range map[string]time.Time{"": made, "nonsense": made, evidence.FormatTime(made.Add(time.Hour)): made, evidence.FormatTime(made.Add(-time.Hour)): made.Add(-time.Hour)} {
		if ready := s.readyAt(d, &evidence.Record{Payload: evidence.Payload{Timestamp: claim}}); !ready.Equal(want.Add(3 * time.Hour)) {
			t.Errorf("a record of %q is ready at %v", claim, ready)
		}
	}
}

// TestTwoProcesses: processes that try at the same time begin one trial for each record.
func TestTwoProcesses(t *testing.T) {
	h := newHall(t, 0)
	for i := range 6 {
		h.output(t, "desk", "", fmt.Sprint(i))
	}
	var both sync.WaitGroup
	services := []*Service{h.serve(t, all), h.serve(t, all), h.serve(t, all)}
	for _, s := range services {
		both.Go(func() {
			for range 20 {
				if err := s.try(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	h.settleAll(t, services[0])
	if status := services[0].Status(); status.Trials != 6 || status.Owed != 0 {
		t.Errorf("%+v", status)
	}
}

// TestCannotBeTried: what cannot be tried stays owed, with the reason, and does not keep the others from being tried.
func TestCannotBeTried(t *testing.T) {
	h := newHall(t, 0)
	bad := h.output(t, "desk", "", "a")
	h.output(t, "desk", "", "b")
	s := h.serve(t, all)
	check(t, s.picked.follow(t.Context(), nil))
	s.cannot(s.picked.of[bad.Digest], fmt.Errorf("reading: %w", ledger.ErrExpired))
	h.settleAll(t, s)
	status := s.Status()
	if status.Owed != 1 || status.Trials != 1 || !strings.Contains(status.Debts[0].Why, "expired") || status.Debts[0].Record != bad.Digest {
		t.Errorf("%+v", status)
	}
	h.pass(2 * time.Hour)
	h.settleAll(t, s) // it is tried again
	if owed := s.Status().Owed; owed != 0 {
		t.Errorf("%d are owed", owed)
	}
	if isEvidence(errors.New("disk")) || isEvidence(nil) {
		t.Error("an error of the disk is taken for one of the records")
	}
}

// TestAround: the jury sees the records around the one that is tried, as many as the settings allow, and none of another agent before the
// agent's first.
func TestAround(t *testing.T) {
	h := newHall(t, 0)
	var chain []*evidence.Record
	for i := range 12 {
		agent := "desk"
		if i < 2 || i == 7 {
			agent = "another"
		}
		chain = append(chain, h.output(t, agent, "orders", fmt.Sprint(i)))
	}
	alone := h.output(t, "desk", "", "alone")
	for _, c := range []struct {
		records, of int
		want        string
	}{
		{1, 5, "5"}, {2, 5, "4 5"}, {3, 5, "4 5 6"}, {4, 5, "3 4 5 6"}, {5, 5, "3 4 5 6 7"}, {50, 5, "2 3 4 5 6 7 8 9 10 11"},
		{5, 11, "8 9 10 11"}, {4, 2, "2 3"}, {9, 3, "2 3 4 5 6 7"}, {3, 8, "8 9"},
	} {
		settings := all
		settings.Records = c.records
		s := h.serve(t, settings)
		records, err := s.around(t.Context(), chain[c.of])
		check(t, err)
		var have []string
		for _, r := range records {
			have = append(have, strings.Trim(string(r.Payload.Response), `"`))
		}
		if got := strings.Join(have, " "); got != c.want {
			t.Errorf("%d records around %d: %s, want %s", c.records, c.of, got, c.want)
		}
	}
	if records, err := h.serve(t, all).around(t.Context(), alone); err != nil || len(records) != 1 {
		t.Errorf("a record without a chain: %d, %v", len(records), err)
	}
	large := func(n int) []*evidence.Record {
		var list []*evidence.Record
		for range n {
			list = append(list, h.output(t, "desk", "", fmt.Sprint("long ", n, len(list)), strings.Repeat("x", 1<<20)))
		}
		return list
	}
	before, after := fit(large(4), large(3))
	if len(before)+len(after) > 3 || len(before) == 0 || len(after) == 0 {
		t.Errorf("%d before and %d after have more than %d bytes", len(before), len(after), maxEvidence)
	}
}

// TestLongChain: a record far from the beginning of its chain is tried, too. The jury sees as many records as the settings allow; the chain before them is verified
// with them, because one that is cut is refuted.
func TestLongChain(t *testing.T) {
	h := newHall(t, 0)
	var last *evidence.Record
	for i := range 6 {
		last = h.output(t, "desk", "orders", fmt.Sprint("answer ", i))
	}
	settings := all
	settings.Records = 2
	s := h.serve(t, settings)
	h.settleAll(t, s)
	if status := s.Status(); status.Owed != 0 || status.Trials != 6 {
		t.Fatalf("%+v", status)
	}
	records, err := h.Ledger.Chain(t.Context(), draw.TrialChain(last.Digest))
	check(t, err)
	if submission := string(records[0].Payload.Response); !strings.Contains(submission, "answer 4") || !strings.Contains(submission, "answer 5") || strings.Contains(submission, "answer 3") {
		t.Errorf("%.600s", submission)
	}
}

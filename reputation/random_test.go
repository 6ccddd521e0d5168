package reputation_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// random makes facts of logs of every kind: several panels and logs, old and revoked keys, own sides, holes, overturned
// verdicts.
type random struct {
	*rand.Rand
	made uint64
	at   int64
	from int64
}

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *random, from ...T) T { return from[r.IntN(len(from))] }

func (r *random) digest() evidence.Digest {
	r.made++
	return evidence.DigestOf(binary.BigEndian.AppendUint64(nil, r.made<<20|r.Uint64N(1<<20)))
}

func (r *random) place(index int64) reputation.Place {
	p := reputation.Place{Digest: r.digest(), Origin: pick(r, "log.example/a", "log.example/a", "log.example/b"), Index: index}
	p.ID = fmt.Sprintf("record-%d", r.made)
	return p
}

func (r *random) standing() reputation.Standing {
	s := reputation.Standing{Time: r.from + r.Int64N(r.at-r.from+86_400), Proved: true}
	if r.chance(50) {
		s.Independent = s.Time + r.Int64N(3600)
	}
	switch {
	case r.chance(6):
		s.Proved, s.Rule = false, pick(r, "content/signature", "authentication/revoked", "")
	case r.chance(3):
		s.Time, s.Independent = 0, 0
	}
	return s
}

func (r *random) rater(role evidence.Role) reputation.Rater {
	one := reputation.Rater{Role: role, Name: pick(r, "noa", "ren", "ада", "𝒳 & co", "zoe"), By: "keys"}
	if r.chance(15) {
		one.By, one.CA = "cas", pick(r, "CA of all", "CA of the owner")
	}
	if r.chance(2) {
		one.Name = agent
	}
	return one
}

func (r *random) position() jury.Position {
	return pick(r, jury.SafePass, jury.SafePass, jury.SafePass, jury.NeedsReview, jury.UnsafeFail)
}

func (r *random) policy() *reputation.Policy {
	p := reputation.DefaultPolicy()
	p.RuleJuries, p.AfterOverturn = r.chance(50), r.chance(50)
	if r.chance(25) {
		p.Clock = reputation.Independent
	}
	if r.chance(30) {
		p.SharedCAs = []string{"CA of all"}
		if r.IntN(3) == 0 {
			p.SharedCAs = append(p.SharedCAs, "CA of the owner")
		}
	}
	if r.chance(30) {
		p.Organisations = []reputation.Organisation{{Name: "owner", Actors: []reputation.Actor{{Role: evidence.RoleAgent, Name: agent}, {Role: evidence.RoleSubmitter, Name: "zoe"}}, CAs: []string{"CA of the owner"}}}
		switch r.IntN(4) { // whose recorder "gate" is
		case 0:
			p.Organisations[0].Actors = append(p.Organisations[0].Actors, reputation.Actor{Role: evidence.RoleRecorder, Name: "gate"})
		case 1:
			p.Organisations = append(p.Organisations, reputation.Organisation{Name: "another", Actors: []reputation.Actor{{Role: evidence.RoleRecorder, Name: "gate"}}, CAs: []string{}})
		}
	}
	if r.chance(10) {
		p.Panels = []evidence.Digest{panelOf(1).Digest}
	}
	return p
}

func panelOf(n int) reputation.Panel {
	return reputation.Panel{Digest: evidence.DigestOf([]byte{byte(n)}), Rules: n == 0, Method: jury.MajorityVote, Seats: []string{"offline/rules", fmt.Sprintf("script/m-%d", n)}}
}

func (r *random) facts() *reputation.Facts {
	r.at = 1_790_000_000 + r.Int64N(10_000_000)
	r.from = r.at - r.Int64N(400*86_400) - 86_400
	f := &reputation.Facts{Format: reputation.FactsFormat, At: r.at, Trust: r.digest(), Policy: r.policy(), Identity: r.identity(),
		Records: []reputation.RecordFact{}, Trials: []reputation.TrialFact{}, Reviews: []reputation.ReviewFact{}, Revocations: []reputation.RevocationFact{},
		Counted: []reputation.CountedFact{}, Logs: []reputation.LogFact{}}
	for i := range r.IntN(60) {
		f.Records = append(f.Records, r.record(int64(i), &f.Identity))
	}
	for i := range r.IntN(90) {
		f.Trials = append(f.Trials, r.trial(int64(100+10*i), f.Records))
	}
	for i := range r.IntN(6) {
		f.Reviews = append(f.Reviews, r.review(int64(2000+i), f.Records))
	}
	if r.chance(20) && len(f.Identity.Keys) > 0 {
		f.Revocations = append(f.Revocations, reputation.RevocationFact{Place: r.place(3000), Standing: r.standing(), KeyID: f.Identity.Keys[0].KeyID, From: r.at - r.Int64N(90*86_400)})
	}
	r.counts(f)
	return f
}

func (r *random) identity() reputation.Identity {
	if r.chance(20) {
		return reputation.Identity{Name: agent, By: "cas", CA: "CA of the owner", Keys: []reputation.KeyOfRecord{}}
	}
	me := reputation.Identity{Name: agent, By: "keys", Keys: []reputation.KeyOfRecord{}}
	for i := range 1 + r.IntN(3) {
		k := reputation.KeyOfRecord{KeyID: evidence.DigestOf([]byte{'k', byte(i)})}
		if r.chance(30) {
			k.From, k.To = r.from, r.at
		}
		if r.chance(10) {
			k.Revoked = r.at - r.Int64N(1_000_000)
		}
		me.Keys = append(me.Keys, k)
	}
	return me
}

func (r *random) record(index int64, me *reputation.Identity) reputation.RecordFact {
	one := reputation.RecordFact{Place: r.place(index), Standing: r.standing(), By: me.By, CA: me.CA, Keys: []evidence.KeyID{evidence.DigestOf([]byte{'k', byte(r.IntN(2))})}}
	if r.chance(5) {
		one.By, one.CA = "cas", "CA of all"
	}
	if r.chance(15) {
		one.Recorder, one.Keys = "gate", []evidence.KeyID{evidence.DigestOf([]byte("g"))}
	}
	return one
}

func (r *random) trial(index int64, records []reputation.RecordFact) reputation.TrialFact {
	t := reputation.TrialFact{Place: r.place(index), Standing: r.standing(), Chain: "trial-x", CaseSeq: r.Int64N(4), Position: r.position(), Degraded: r.chance(8), Inconclusive: r.chance(4), Review: r.chance(20),
		Panel: panelOf(r.IntN(3)), Transcript: r.chance(8), Exhibits: []evidence.Digest{}, Own: []evidence.Digest{}, Decisions: []reputation.DecisionFact{},
		Raters: []reputation.Rater{r.rater(evidence.RoleSubmitter), r.rater(evidence.RoleJuror), r.rater(evidence.RoleJudge)}}
	for range 1 + r.IntN(1+r.IntN(5)) {
		if len(records) > 0 && r.chance(90) {
			t.Exhibits = append(t.Exhibits, records[r.IntN(len(records))].Digest)
		} else {
			t.Exhibits = append(t.Exhibits, r.digest())
		}
		if r.chance(60) {
			t.Own = append(t.Own, t.Exhibits[len(t.Exhibits)-1])
		}
	}
	for i := range r.IntN(3) * r.IntN(2) {
		t.Decisions = append(t.Decisions, reputation.DecisionFact{Place: r.place(index + int64(i) + 1), Standing: r.standing(), Status: evidence.ApprovedWithModifications,
			Position: pick(r, jury.SafePass, jury.UnsafeFail, ""), Reviewer: r.rater(evidence.RoleReviewer)})
	}
	return t
}

func (r *random) review(index int64, records []reputation.RecordFact) reputation.ReviewFact {
	one := reputation.ReviewFact{Place: r.place(index), Standing: r.standing(), Status: pick(r, evidence.Rejected, evidence.Approved), Original: "nothing", Names: []evidence.Digest{}, Reviewer: r.rater(evidence.RoleReviewer)}
	switch {
	case r.chance(10):
		one.Names = append(one.Names, r.digest())
	case len(records) > 0:
		of := records[r.IntN(len(records))]
		one.Names, one.Original = append(one.Names, of.Digest), of.ID
	}
	return one
}

// counts numbers what is at hand, sometimes with a hole, sometimes with the log's entries.
func (r *random) counts(f *reputation.Facts) {
	numbered := map[string]map[reputation.CountOf][]reputation.Place{}
	note := func(of reputation.CountOf, p reputation.Place) {
		if numbered[p.Origin] == nil {
			numbered[p.Origin] = map[reputation.CountOf][]reputation.Place{}
		}
		numbered[p.Origin][of] = append(numbered[p.Origin][of], p)
	}
	for _, one := range f.Records {
		if one.Recorder == "" {
			note(reputation.OfActor, one.Place)
		}
	}
	for _, one := range f.Trials {
		note(reputation.OfSubject, one.Place)
	}
	for _, one := range f.Reviews {
		note(reputation.OfSubject, one.Place)
	}
	for _, origin := range []string{"log.example/a", "log.example/b"} {
		log := reputation.LogFact{Origin: origin, Size: 5000, Actor: []evidence.Digest{}, Subject: []evidence.Digest{}, Wrong: r.chance(2)}
		if r.chance(5) {
			log.Counts = 3
		}
		if r.chance(5) {
			log.Size = 150
		}
		for _, of := range []reputation.CountOf{reputation.OfActor, reputation.OfSubject} {
			dropped := -1
			if r.chance(7) {
				dropped = r.IntN(20)
			}
			for i, p := range numbered[origin][of] {
				one := reputation.CountedFact{Origin: origin, Index: p.Index, Of: of, Seq: int64(i + 1), Digest: p.Digest}
				if r.chance(1) && i == 0 {
					one.Seq = 0
				}
				if i != dropped {
					f.Counted = append(f.Counted, one)
				} else if of == reputation.OfSubject && r.chance(50) { // it is at hand, and its place is not proved
					r.displace(f, p.Digest)
				}
				if of == reputation.OfActor {
					log.Actor = append(log.Actor, p.Digest)
				} else {
					log.Subject = append(log.Subject, p.Digest)
				}
			}
		}
		if r.chance(60) {
			f.Logs = append(f.Logs, log)
		}
	}
}

// displace takes its place in the log from a trial.
func (r *random) displace(f *reputation.Facts, digest evidence.Digest) {
	for i := range f.Trials {
		if t := &f.Trials[i]; t.Digest == digest {
			t.Origin, t.Index, t.Proved, t.Rule = "", 0, false, "order/witnesses"
		}
	}
}

// seeds is how many random logs the implementations are compared on in the short form. At length they are ten times as many.
const seeds = 120

// randomFacts are the facts of the seed.
func randomFacts(seed uint64) *reputation.Facts {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 17)), made: seed << 32}
	return r.facts()
}

// TestSecondImplementation compares with a second implementation, and with this one in WebAssembly, to the byte.
func TestSecondImplementation(t *testing.T) {
	var facts, want bytes.Buffer
	kinds, sealed := map[string]int{}, sealedFacts(t)
	many := seeds
	if os.Getenv("JURAT_TEST_LONG") != "" {
		many *= 10
	}
	for i := range many + len(sealed) {
		f := randomFacts(uint64(i))
		if i >= many {
			f = sealed[i-many]
		}
		doc := must.Get(f.Marshal())(t)
		facts.Write(append(doc, '\n'))
		parsed := new(reputation.Facts)
		must.Do(t, json.Unmarshal(doc, parsed, json.RejectUnknownMembers(true)))
		v := must.Get(parsed.View())(t)
		form := must.Get(v.Marshal())(t)
		want.Write(form)
		note(kinds, v)
	}
	file := filepath.Join(t.TempDir(), "facts.jsonl")
	must.Do(t, os.WriteFile(file, facts.Bytes(), 0o600))
	t.Run("Python", func(t *testing.T) {
		second := filepath.Join("..", "testdata", "second-verifier", "reputation.py")
		sameViews(t, want.Bytes(), exec.Command(needed(t, "python3"), second, "--lines", file))
	})
	t.Run("WebAssembly", func(t *testing.T) {
		root := must.Get(exec.Command("go", "env", "GOROOT").Output())(t)
		start := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
		sameViews(t, want.Bytes(), exec.Command(needed(t, "node"), start, inWebAssembly(t), file))
	})
	for _, kind := range []string{"scored", "too few", "not counted", "refuted", "not proved", "unproved", "doubted", "dropped", "hole", "tail", "uncounted", "count", "own-side", "identity", "later", "revoked", "open", "original", "panel",
		"degraded", "inconclusive", "review", "exhibits", "time", "moved", "among fewer", "set aside", "allegation", "allegation decided", "allegation left open"} {
		must.Hold(t, kinds[kind] != 0, "no random log shows %q", kind)
	}
}

// needed is the path of a program without which the test is skipped, but not in CI.
func needed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the other implementation cannot run: %v", err)
	}
	must.Do(t, err)
	return path
}

// inWebAssembly builds this package's program as a browser would run it.
func inWebAssembly(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "views.wasm")
	build := exec.Command("go", "build", "-o", file, "./testdata/views")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	return file
}

// sameViews compares what another program prints with these views, one in a line.
func sameViews(t *testing.T, want []byte, other *exec.Cmd) {
	t.Helper()
	var complaints bytes.Buffer
	other.Stderr = &complaints
	got, err := other.Output()
	must.Need(t, err == nil, "%v\n%s", err, complaints.String())
	if bytes.Equal(got, want) {
		return
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if bytes.Equal(g[i], w[i]) {
			continue
		}
		at := 0
		for at < min(len(g[i]), len(w[i])) && g[i][at] == w[i][at] {
			at++
		}
		from := max(at-200, 0)
		t.Fatalf("seed %d, byte %d\nGo:    %s\nother: %s", i, at, w[i][from:min(at+200, len(w[i]))], g[i][from:min(at+200, len(g[i]))])
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

// sealedFacts are of real files: of records that were sealed and tried, with what people decided.
func sealedFacts(t *testing.T) (all []*reputation.Facts) {
	for _, policy := range []bool{false, true} {
		w := passed(t, 11)
		failed := w.tryOnly(panel(jury.UnsafeFail, "script"), w.record(2))
		w.decide(failed, "noa", jury.SafePass)
		w.giveChain(failed.ID)
		w.try(panel(jury.SafePass, "offline"), w.record(2), w.record(3), w.record(4))
		c := panel(jury.SafePass, "script")
		w.giveChain(w.TryBefore(t, c.Settings, c.Jurors, nil).ID)
		w.give(w.revoke(w.Now())...)
		g := w.gatherer(func(c *reputation.Config) {
			c.Policy = reputation.DefaultPolicy()
			c.Policy.AfterOverturn, c.Policy.RuleJuries = policy, policy
		})
		w.ok(w.entries(g))
		for _, doc := range w.files {
			must.Get(g.File(doc))(w.t)
		}
		f := must.Get(g.Facts())(w.t)
		must.Need(t, len(f.Records) == 11 && len(f.Trials) == 13 && len(f.Revocations) == 1,
			"%d records, %d trials, %d revocations", len(f.Records), len(f.Trials), len(f.Revocations))
		all = append(all, f)
	}
	return all
}

func note(kinds map[string]int, v *reputation.View) {
	for _, c := range v.Classes {
		kinds[string(c.Status)]++
		for _, m := range c.Moves {
			if m.From != "" {
				kinds["moved"]++
			}
			if m.From == m.To {
				kinds["among fewer"]++
			}
		}
		for _, u := range c.Units {
			for _, s := range u.Verdicts {
				if s.SetAside {
					kinds["set aside"]++
				}
			}
		}
	}
	for _, l := range v.Completeness {
		kinds[l.Judgments.Rule]++
	}
	for _, o := range v.LeftOut {
		kinds[o.Rule]++
	}
	kinds["allegation"] += len(v.Allegations)
	for _, a := range v.Allegations {
		switch a.Decided {
		case jury.NeedsReview:
			kinds["allegation left open"]++
		case jury.SafePass, jury.UnsafeFail:
			kinds["allegation decided"]++
		}
	}
}

// TestOrderChangesNothing: facts in another order give the same bytes.
func TestOrderChangesNothing(t *testing.T) {
	for seed := range uint64(200) {
		want := bytesOf(t, randomFacts(seed))
		f := randomFacts(seed)
		r := rand.New(rand.NewPCG(seed, 18))
		shuffle(r, f.Records)
		shuffle(r, f.Trials)
		shuffle(r, f.Reviews)
		shuffle(r, f.Counted)
		shuffle(r, f.Logs)
		shuffle(r, f.Identity.Keys)
		for i := range f.Trials {
			shuffle(r, f.Trials[i].Exhibits)
			shuffle(r, f.Trials[i].Own)
			shuffle(r, f.Trials[i].Raters)
			shuffle(r, f.Trials[i].Decisions)
		}
		got := bytesOf(t, f)
		must.Need(t, bytes.Equal(got, want), "seed %d\n%s\n%s", seed, want, got)
	}
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func bytesOf(t *testing.T, f *reputation.Facts) []byte {
	t.Helper()
	v := must.Get(f.View())(t)
	form := must.Get(v.Marshal())(t)
	return slices.Clone(form)
}

// TestMonths: records weigh the same however old they are, and are counted by the month of their proved time.
func TestMonths(t *testing.T) {
	w := passed(t, 12)
	r := w.tried(panel(jury.UnsafeFail, "script"), 12)
	f := w.facts()
	for i := range f.Records {
		if f.Records[i].Time = 1_735_689_600; f.Records[i].Digest == r.Digest { // 1 January 2025
			f.Records[i].Time -= 1
		}
	}
	v := must.Get(f.View())(w.t)
	c := class(v, reputation.Models)
	want := []reputation.Month{{Month: "2024-12", Bad: 1}, {Month: "2025-01", Good: 12}}
	must.Hold(t, slices.Equal(c.Months, want) && c.Good.Weight == 12<<20 && c.Bad.Weight == 1<<20, "%+v, good %+v, bad %+v", c.Months, c.Good, c.Bad)
	f.At += 1000 * 86_400
	later := must.Get(f.View())(w.t)
	l := class(later, reputation.Models)
	must.Hold(t, *l.Bounds == *c.Bounds, "the bounds are %+v, and a thousand days later %+v", c.Bounds, l.Bounds)
	text := strings.Join(v.Explain(), "\n")
	must.Hold(t, strings.Contains(text, "2025-01: 12 passed, 0 failed, 0 undecided"), "%v", text)
}

// TestExplainAddsUp: who adds up what --explain says of each record, and works out its formula, comes to the numbers.
func TestExplainAddsUp(t *testing.T) {
	w := passed(t, 11)
	pair := []*evidence.Record{w.act(11), w.act(12)}
	w.give(pair...)
	w.try(panel(jury.SafePass, "script"), pair...)
	w.try(panel(jury.UnsafeFail, "script"), w.record(3))
	w.try(panel(jury.NeedsReview, "script"), w.record(4))
	v := w.view()
	lines := v.Explain()
	text := strings.Join(lines, "\n")
	sums := map[string]int64{}
	for _, m := range regexp.MustCompile(`  unit sha256:[0-9a-f]{64} \(record \S+\): (\w+)\n    .*: weight 2\^\(20 - (\d+)\) = (\d+)\n`).FindAllStringSubmatch(text, -1) {
		var s, weight int64
		must.Get(fmt.Sscan(m[2]+" "+m[3], &s, &weight))(w.t)
		if weight != 1<<20>>s {
			t.Errorf("%s", m[0])
		}
		sums[m[1]] += weight
	}
	for _, u := range class(v, reputation.Models).Units {
		for _, said := range u.Verdicts {
			must.Hold(t, strings.Contains(text, "    verdict "+said.Record.String()+" of "), "it does not name the verdict %s", said.Record)
		}
	}
	var g, b int64
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  G = ") })
	must.Get(fmt.Sscanf(lines[i], "  G = %d of 11 units that passed, B = %d of 1 that failed; 1 undecided", &g, &b))(w.t)
	must.Hold(t, g == sums["safe_pass"] && b == sums["unsafe_fail"] && g == 10<<20 && b == 1<<20,
		"G = %d and B = %d, and the units come to %v", g, b, sums)
	for name, want := range map[string]int64{"lower": class(v, reputation.Models).Bounds.Lower, "upper": class(v, reputation.Models).Bounds.Upper} {
		m := regexp.MustCompile(name + ` = ⌊\((\d+) ([−+]) (\d+)\) / (\d+)⌋ = (\d+) of`).FindStringSubmatch(text)
		must.Need(t, m != nil, "there is no %s bound in\n%s", name, text)
		number := func(s string) *big.Int { n, _ := new(big.Int).SetString(s, 10); return n }
		sum := new(big.Int).Add(number(m[1]), number(m[3]))
		if m[2] == "−" {
			sum.Sub(number(m[1]), number(m[3]))
		}
		got := sum.Div(sum, number(m[4]))
		must.Hold(t, got.Int64() == want && m[5] == fmt.Sprint(want), "%s: it comes to %v, and says %s, want %d", name, got, m[5], want)
	}
	must.Hold(t, v.Outcome != verify.Refuted, "%+v", v.Completeness)
}

// FuzzFile: no file makes the agent's lower bound higher than the honest files do, whatever bytes of it are changed.
func FuzzFile(f *testing.F) {
	w := newWorld(f)
	r := w.act(0)
	w.give(r)
	done := w.tryOnly(panel(jury.SafePass, "script"), r)
	w.decide(done, "noa", jury.SafePass)
	w.giveChain(done.ID)
	options := w.Options(f)
	options.At = jurattest.Start.Add(24 * time.Hour)
	for _, doc := range w.files {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		g := must.Get(reputation.NewGatherer(reputation.Config{Agent: agent, Options: options}))(t)
		for range 2 {
			if _, err := g.File(doc); err != nil {
				return
			}
		}
		v := must.Get(g.View())(t)
		for _, c := range v.Classes {
			must.Hold(t, c.Good.Units <= 1 && c.Bad.Units == 0, "%+v", c)
		}
	})
}

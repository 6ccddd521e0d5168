package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// chance makes random chains of records: honest ones, honest ones with small changes, and wild ones. It signs and
// logs the records itself, because a ledger refuses much of what a hostile operator can seal.
type chance struct {
	*rand.Rand
	t     *testing.T
	house *jurattest.House
	count int
}

func newChance(t *testing.T, seed uint64) *chance { return newChanceOf(t, seed, jurattest.New(t)) }

func newChanceOf(t *testing.T, seed uint64, house *jurattest.House) *chance {
	return &chance{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, house: house}
}

// of returns a random element of the list.
func of[T any](c *chance, list ...T) T { return list[c.IntN(len(list))] }

// once is true once in n times on average.
func (c *chance) once(n int) bool { return c.IntN(n) == 0 }

// telling is a chain under construction.
type telling struct {
	*chance
	records []*evidence.Record
	apart   []*evidence.Record // sealed, and left out of the file
}

// said is a payload as a caller sends it.
type said map[string]any

var (
	chanceAgents   = []string{"a", "b", "c", "user@example.com"}
	chanceRequests = []string{"q1", "q2", "q3"}
	chanceTexts    = []string{"x", "y"}
	chanceChains   = []string{"c1", "c1", "c2"}
)

// bundle is a random file. It is signed, and in a log if proved is set.
func (c *chance) bundle(ctx context.Context, proved bool) *evidence.Bundle {
	c.t.Helper()
	c.count = 0
	story := &telling{chance: c}
	wild := c.once(2)
	for range 1 + c.IntN(7) {
		switch {
		case wild:
			story.add(ctx, story.wild())
		default:
			story.add(ctx, story.honest())
		}
		if c.once(12) {
			last := len(story.records) - 1
			story.apart = append(story.apart, story.records[last])
			story.records = story.records[:last]
		}
	}
	if c.once(8) {
		c.Shuffle(len(story.records), func(i, j int) {
			story.records[i], story.records[j] = story.records[j], story.records[i]
		})
	}
	return c.log(story.records, proved)
}

// known returns any record made so far, including those left out of the file.
func (s *telling) known() *evidence.Record {
	all := slices.Concat(s.records, s.apart)
	if len(all) == 0 {
		return nil
	}
	return of(s.chance, all...)
}

func (s *telling) base(action string) said {
	m := said{"action_type": action, "timestamp": fmt.Sprintf("2026-01-01T00:00:%02dZ", s.count)}
	switch action {
	case "human_review":
		m["reviewer_id"] = of(s.chance, "user@example.com", "user@example.com", "second@example.com")
	case "delivery":
		m["agent_id"], m["response"] = of(s.chance, chanceAgents...), of(s.chance, chanceTexts...)
	case "chain_step":
		m["agent_id"], m["request_id"], m["response"], m["chain_position"] = of(s.chance, chanceAgents...), of(s.chance, chanceRequests...), of(s.chance, chanceTexts...), 1
	default:
		m["agent_id"], m["request_id"], m["response"], m["prompt"] = of(s.chance, chanceAgents...), of(s.chance, chanceRequests...), of(s.chance, chanceTexts...), "p"
		m["model"], m["model_version"], m["parameters"] = "m", "v", map[string]any{}
	}
	return m
}

// honest is a record that continues the chain, sometimes with a small error.
func (s *telling) honest() said {
	m := s.honestAct()
	for s.once(4) {
		s.change(m)
	}
	return m
}

func (s *telling) honestAct() said {
	before := s.known()
	switch action := of(s.chance, "chain_step", "chain_step", "chain_step", "model_output", "message", "human_review", "delivery"); {
	case before == nil || action != "human_review" && action != "delivery":
		return s.honestStep(of(s.chance, "chain_step", "chain_step", "message"), before)
	case action == "human_review":
		return s.honestReview(before)
	default:
		return s.honestDelivery(before)
	}
}

func (s *telling) honestStep(action string, before *evidence.Record) said {
	m := s.base(action)
	if s.once(2) || before != nil && before.Payload.ChainID != "" {
		m["chain_id"] = "c1"
	}
	if before == nil {
		return m
	}
	p := &before.Payload
	if s.once(5) && p.RequestID != "" {
		m["parent_request_id"] = p.RequestID
		delete(m, "chain_id")
		return m
	}
	m["previous_record"], m["previous_agent"] = before.Digest.String(), p.Actor()
	if p.ChainPosition > 0 {
		m["chain_position"] = p.ChainPosition + 1
	}
	if p.NextAgent != "" && p.Role() == evidence.RoleAgent {
		m["agent_id"] = p.NextAgent
	}
	if s.once(3) {
		m["next_agent"] = of(s.chance, chanceAgents...)
	}
	return m
}

func (s *telling) honestReview(original *evidence.Record) said {
	m := s.base("human_review")
	m["original_response_id"], m["saw"] = original.Payload.RecordID, []string{original.Digest.String()}
	m["approval_status"] = of(s.chance, "approved", "approved_with_modifications", "rejected")
	if m["approval_status"] == "approved_with_modifications" {
		m["modified_response"] = of(s.chance, "z", "x")
	}
	return m
}

func (s *telling) honestDelivery(of *evidence.Record) said {
	m := s.base("delivery")
	saw := []string{of.Digest.String()}
	original := of
	if of.Payload.ActionType == evidence.HumanReview {
		for _, r := range slices.Concat(s.records, s.apart) {
			if r.Payload.RecordID == of.Payload.OriginalResponseID {
				original = r
				saw = append(saw, r.Digest.String())
			}
		}
		m["response"] = strings.Trim(string(of.Payload.ModifiedResponse), `"`)
	}
	if m["response"] == "" || original == of {
		m["response"] = strings.Trim(string(original.Payload.Response), `"`)
	}
	if !s.once(3) {
		m["original_response_id"] = original.Payload.RecordID
	}
	m["saw"] = saw
	return m
}

// wild returns a record with random links.
func (s *telling) wild() said {
	action := of(s.chance, "chain_step", "chain_step", "model_output", "human_review", "delivery", "message")
	m := s.base(action)
	switch action {
	case "human_review":
		m["approval_status"] = of(s.chance, "approved", "approved_with_modifications", "rejected")
		m["original_response_id"] = s.id()
		if m["approval_status"] == "approved_with_modifications" {
			m["modified_response"] = of(s.chance, chanceTexts...)
		}
	case "delivery":
		m["saw"] = s.digests()
	}
	for range s.IntN(6) {
		s.change(m)
	}
	return m
}

// id returns the id of a record, or an unknown one.
func (s *telling) id() string {
	if r := s.known(); r != nil && !s.once(10) {
		return r.Payload.RecordID
	}
	return "nothing"
}

func (s *telling) digest() string {
	if r := s.known(); r != nil && !s.once(8) {
		return r.Digest.String()
	}
	return evidence.DigestOf([]byte{byte(s.IntN(3))}).String()
}

func (s *telling) digests() []string {
	list := []string{s.digest()}
	for range s.IntN(3) {
		if d := s.digest(); !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// change sets or removes one member that links records.
func (s *telling) change(m said) {
	switch of(s.chance, "previous_record", "saw", "chain_id", "chain_position", "previous_agent", "next_agent", "parent_request_id",
		"request_id", "timestamp", "text", "modified_response", "original_response_id", "approval_status", "actor", "none", "case") {
	case "previous_record":
		m["previous_record"] = s.digest()
	case "saw":
		m["saw"] = s.digests()
	case "chain_id":
		m["chain_id"] = of(s.chance, chanceChains...)
	case "chain_position":
		m["chain_position"] = 1 + s.IntN(4)
	case "previous_agent":
		m["previous_agent"] = of(s.chance, chanceAgents...)
	case "next_agent":
		m["next_agent"] = of(s.chance, chanceAgents...)
	case "parent_request_id":
		m["parent_request_id"] = of(s.chance, chanceRequests...)
	case "request_id":
		m["request_id"] = of(s.chance, chanceRequests...)
	case "timestamp":
		m["timestamp"] = fmt.Sprintf("2026-01-01T00:00:%02dZ", s.IntN(max(1, s.count)))
	case "text":
		m["response"] = of(s.chance, chanceTexts...)
	case "modified_response":
		m["modified_response"] = of(s.chance, chanceTexts...)
	case "original_response_id":
		m["original_response_id"] = s.id()
	case "approval_status":
		m["approval_status"] = of(s.chance, "approved", "rejected")
	case "actor":
		if m["reviewer_id"] == nil {
			m["agent_id"] = of(s.chance, chanceAgents...)
		}
	case "case":
		m["case"] = s.digest()
	case "none":
		delete(m, of(s.chance, "previous_record", "saw", "chain_id", "chain_position", "previous_agent", "parent_request_id", "original_response_id", "request_id"))
	}
}

// add signs a payload. It skips payloads that cannot be sealed.
func (s *telling) add(ctx context.Context, m said) {
	doc := must.Get(json.Marshal(map[string]any(m)))(s.t)
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		draft = s.tame(m)
	}
	var apart []string
	if draft.ActionType != evidence.HumanReview && s.once(10) {
		apart = []string{"/response"}
	}
	s.records = append(s.records, s.sign(ctx, draft, apart))
	if len(apart) > 0 && s.once(2) {
		s.records[len(s.records)-1].Disclosures = nil
	}
}

// tame removes members until the payload can be sealed.
func (s *telling) tame(m said) *evidence.Draft {
	s.t.Helper()
	doc := must.Get(json.Marshal(map[string]any(s.base("message"))))(s.t)
	draft, err := evidence.ParseDraft(doc)
	must.Need(s.t, err == nil, "%v: %v", err, m)
	return draft
}

func (c *chance) sign(ctx context.Context, draft *evidence.Draft, apart []string) *evidence.Record {
	c.t.Helper()
	c.count++
	now := time.Date(2026, 1, 1, 0, 0, c.count, 0, time.UTC)
	id := must.Get(evidence.NewRecordID(now, c.house.Random))(c.t)
	signers := must.Get(c.house.Keys.Signers(ctx, draft.Role(), draft.Actor()))(c.t)
	r := must.Get(draft.SealingApart(nil, apart...).Seal(evidence.Sealing{Signers: signers, Time: now, RecordID: id, Random: c.house.Random}))(c.t)
	r.Timestamps = []evidence.Timestamp{}
	return r
}

// signed is a payload, signed by its actor.
func (c *chance) signed(ctx context.Context, p evidence.Payload) *evidence.Record {
	c.t.Helper()
	draft := must.Get(evidence.NewDraft(p))(c.t)
	r := c.sign(ctx, draft, nil)
	token := must.Get(timestamp.NewMock().Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(c.t)
	r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
	return r
}

// twins returns two records with the same id in one log.
func (c *chance) twins(ctx context.Context) (checkpoint string, first, second *evidence.Record) {
	c.t.Helper()
	p := answer()
	first = c.signed(ctx, p)
	p.RecordID, p.Response = first.Payload.RecordID, quoted(routeA7)
	second = c.signed(ctx, p)
	first.Log, second.Log = &evidence.LogProof{Index: 0, Proof: [][]byte{}}, &evidence.LogProof{Index: 1, Proof: [][]byte{}}
	return c.prove([]*evidence.Record{first, second}), first, second
}

// parts is a random chain in several files, which may share records.
func (c *chance) parts(ctx context.Context) []*evidence.Bundle {
	c.t.Helper()
	for {
		whole := c.bundle(ctx, true)
		if whole.Checkpoint == "" || len(whole.Records) < 2 {
			continue
		}
		parts := make([]*evidence.Bundle, 1+c.IntN(3))
		for i := range parts {
			parts[i] = &evidence.Bundle{Checkpoint: whole.Checkpoint}
		}
		for _, r := range whole.Records {
			to := c.IntN(len(parts))
			parts[to].Records = append(parts[to].Records, r)
			if again := c.IntN(len(parts)); again != to && c.once(4) {
				shown := *r
				shown.Disclosures = nil
				parts[again].Records = append(parts[again].Records, &shown)
			}
		}
		parts = slices.DeleteFunc(parts, func(b *evidence.Bundle) bool { return len(b.Records) == 0 })
		if len(parts) > 1 {
			return parts
		}
	}
}

// log gives records their places in a new log, sometimes not all, or with wrong counts.
func (c *chance) log(records []*evidence.Record, proved bool) *evidence.Bundle {
	c.t.Helper()
	logged, counted := !c.once(6), map[string]int64{}
	for i, r := range records {
		if chain := r.Payload.ChainID; chain != "" {
			counted[chain]++
			if c.once(40) {
				counted[chain]++
			}
		}
		if logged && (proved || !c.once(20)) {
			counts := evidence.LogCounts{ChainSeq: counted[r.Payload.ChainID]}
			if r.Payload.ChainID == "" {
				counts.ChainSeq = 0
			}
			if r.Payload.ActionType == evidence.Submission {
				counts.CaseSeq = 1
			}
			r.Log = counts.At(int64(i))
		}
	}
	b := &evidence.Bundle{Records: records}
	if proved && logged {
		b.Checkpoint = c.prove(records)
	}
	return b
}

// prove proves each record to be in a log that holds nothing else.
func (c *chance) prove(records []*evidence.Record) (checkpoint string) {
	c.t.Helper()
	var hashes []tlog.Hash
	stored := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(at))
		for i, place := range at {
			list[i] = hashes[place]
		}
		return list, nil
	})
	size := int64(len(records))
	for i, r := range records {
		more := must.Get(tlog.StoredHashes(int64(i), r.LogEntry(r.Log.Counts()), stored))(c.t)
		hashes = append(hashes, more...)
	}
	for i, r := range records {
		proof := must.Get(tlog.ProveRecord(size, int64(i), stored))(c.t)
		for _, node := range proof {
			r.Log.Proof = append(r.Log.Proof, slices.Clone(node[:]))
		}
	}
	root := must.Get(tlog.TreeHash(size, stored))(c.t)
	checkpoint = must.Get(c.house.SignCheckpoint(operator.Checkpoint{Origin: jurattest.Origin, Size: size, Root: root}))(c.t)
	return checkpoint
}

// TestSecondVerifierOnChains compares the two verifiers on random chains.
func TestSecondVerifierOnChains(t *testing.T) {
	compareVerifiers(t, 100, 10_000, func(t *testing.T, c *chance, i int) given {
		proved := i%20 == 0
		b := c.bundle(t.Context(), proved)
		o := verify.Options{}
		if proved {
			o = c.house.Options(t)
		}
		return givenBundle(t, fmt.Sprintf("chain-%d", i), b, o)
	})
}

// TestSecondVerifierOnTrials compares them on trials in which a clerk changed something.
func TestSecondVerifierOnTrials(t *testing.T) {
	var honest [][]*evidence.Record
	for _, name := range slices.Sorted(maps.Keys(trialPlans())) {
		honest = append(honest, committedTrial(t, name))
	}
	compareVerifiers(t, 40, 3_000, func(t *testing.T, c *chance, i int) given {
		return givenBundle(t, fmt.Sprintf("trial-%d", i), c.trial(t.Context(), honest), verify.Options{})
	})
}

// TestSecondVerifierTogether compares them on random chains in several files.
func TestSecondVerifierTogether(t *testing.T) {
	compareVerifiers(t, 30, 1_000, func(t *testing.T, c *chance, i int) given {
		for {
			parts := c.parts(t.Context())
			o := c.house.Options(t)
			g := givenBundle(t, fmt.Sprintf("parts-%d", i), parts[0], o)
			files := [][]byte{g.file}
			for _, b := range parts[1:] {
				g.with = append(g.with, givenBundle(t, g.name, b, o).file)
			}
			if jointReport(t, append(files, g.with...), o) != nil {
				return g
			}
		}
	})
}

// compareVerifiers makes random files and lets both verifiers judge them: few in a short run, many in a long one.
// JURAT_TEST_SEED sets the start.
func compareVerifiers(t *testing.T, few, many int, next func(t *testing.T, c *chance, i int) given) {
	t.Helper()
	n, seed, _ := chanceOfTest(t, few, many)
	const lot = 250 // files with keys of one house
	for first := 0; first < n; first += lot {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			c := newChance(t, seed+uint64(first))
			var files []given
			for i := first; i < min(n, first+lot); i++ {
				files = append(files, next(t, c, i))
			}
			compareOver(t, files)
		})
	}
}

// compareOver lets the second verifier judge files, and compares every finding, in order.
func compareOver(t *testing.T, files []given) {
	t.Helper()
	folder := t.TempDir()
	m := vectorManifest{Format: "jurat/vectors/v1"}
	for _, g := range files {
		v := verificationVector{Name: g.name, File: g.name + ".jurat"}
		write(t, folder, v.File, g.file)
		if g.trust != nil {
			v.Trust = g.name + ".trust"
			write(t, folder, v.Trust, g.trust)
			var err error
			g.o.Trust, err = trust.Parse(g.trust)
			must.Need(t, err == nil, "%v", err) // with its keys in the order in the file
		}
		for i, file := range g.with {
			v.With = append(v.With, fmt.Sprintf("%s.with-%d", g.name, i+1))
			write(t, folder, v.With[i], file)
		}
		var r *verify.Report
		var err error
		if len(g.with) > 0 {
			r = jointReport(t, append([][]byte{g.file}, g.with...), g.o)
		} else if r, err = verify.File(g.file, g.o); err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		v.Report = inDetail(r)
		m.Verifications = append(m.Verifications, v)
	}
	doc := must.Get(json.Marshal(m))(t)
	write(t, folder, "manifest.json", doc)
	if kept := os.Getenv("JURAT_TEST_KEEP"); kept != "" {
		defer func() {
			if t.Failed() {
				must.Want(t, os.CopyFS(filepath.Join(kept, strings.ReplaceAll(t.Name(), "/", "-")), os.DirFS(folder)), nil)
			}
		}()
	}
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "vectors.py"), filepath.Join(folder, "manifest.json"))
	run.Stderr = &complaints
	out, err := run.Output()
	must.Hold(t, err == nil, "%v\n%s", err, complaints.String())
	must.Equal(t, bytes.Count(out, []byte("\n")), len(files), "it judged")
	must.Hold(t, !bytes.Contains(out, []byte(`"found": {"unsupported"`)), "the second verifier does not support this input")
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
}

// python finds what the second verifier needs. It fails the test if that is missing and nothing may be skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		_, err = exec.LookPath("openssl")
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the second verifier cannot run: %v", err)
	}
	must.Do(t, err)
	_, err = os.ReadDir(filepath.Join("..", "testdata", "second-verifier"))
	must.Need(t, err == nil, "%v", err) // so that results of tests are kept only while its files stay the same
	return path
}

// TestSecondVerifierOnDeepFiles: a file that is nested very deep is one that cannot be read, and Python does not break down on it.
func TestSecondVerifierOnDeepFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep.jurat")
	write(t, filepath.Dir(file), filepath.Base(file), []byte(`{"format":"jurat/bundle/v1","more":`+strings.Repeat("[", 300_000)+strings.Repeat("]", 300_000)+"}"))
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "verify.py"), file)
	said, err := run.CombinedOutput()
	must.Hold(t, run.ProcessState != nil && run.ProcessState.ExitCode() == 2 && strings.Contains(string(said), "nested too deep"), "%v: %s", err, said)
}

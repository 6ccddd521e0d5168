package verify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
)

// A purse has records with provable amounts, and what opens them.
type purse struct {
	*jurattest.House
	t       testing.TB
	records []*evidence.Record
	random  *rand.ChaCha8
}

func newPurse(t testing.TB, amounts ...string) *purse {
	t.Helper()
	p := &purse{jurattest.NewForStrangers(t), t, nil, rand.NewChaCha8([32]byte{15})}
	for i, amount := range amounts {
		var before evidence.Digest
		if i > 0 {
			before = p.records[i-1].Digest
		}
		draft, err := evidence.NewDraft(evidence.Payload{PreviousRecord: before, ActionType: evidence.ChainStep, AgentID: "agent", RequestID: fmt.Sprint("r", i), ChainID: "purse",
			ChainPosition: int64(i + 1), Response: jsontext.Value(`"paid"`), Timestamp: evidence.FormatTime(p.Now()),
			Metadata: jsontext.Value(`{"action":"quote","amount":` + amount + `}`)})
		must.Do(t, err)
		signers := must.Get(p.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
		wish := draft.SealingApart(map[string]property.Kind{"/metadata/amount": "decimal:2", "/metadata/action": property.Text})
		r := must.Get(p.Ledger.Seal(t.Context(), wish, signers))(t)
		p.records = append(p.records, r)
	}
	return p
}

// file is the bundle of all records, in which those of the map carry these proofs.
func (p *purse) file(carried map[int][]evidence.PropertyProof) *evidence.Bundle {
	p.t.Helper()
	b := p.Bundle(p.t, p.records...)
	for i, r := range b.Records {
		r.Disclosures, r.Properties = nil, carried[i]
	}
	return b
}

func (p *purse) statement(form property.Form, i int) *property.Statement {
	return &property.Statement{Format: property.Format, Form: form, Kind: "decimal:2", Members: []property.Member{{Record: p.records[i].Digest.String(), Pointer: "/metadata/amount"}}}
}

func (p *purse) rangeOf(i int, lo, hi string) *property.Statement {
	s := p.statement(property.Range, i)
	s.Lo, s.Hi = jsontext.Value(lo), jsontext.Value(hi)
	return s
}

// prove makes the proof of a statement about a record.
func (p *purse) prove(s *property.Statement, i int) evidence.PropertyProof {
	p.t.Helper()
	at := slices.IndexFunc(p.records[i].Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == s.Members[0].Pointer })
	d := p.records[i].Disclosures[at]
	proof := must.Get(property.Prove(s, property.Opening{Value: d.Value, Salt: [32]byte(d.Salt)}, p.random))(p.t)
	return evidence.PropertyProof{Proof: proof, Statement: written(p.t, s)}
}

func written(t testing.TB, s *property.Statement) jsontext.Value {
	t.Helper()
	return must.Get(s.Bytes())(t)
}

// A proving is a file whose records carry proofs, and what is to be said of the guarantee.
type proving struct {
	name   string
	file   *evidence.Bundle
	status verify.Status
	rule   string
	shown  int
}

func provings(t testing.TB) []proving {
	t.Helper()
	p := newPurse(t, "12.5", "30", "12.5", "-1")
	at := func(i int, of ...evidence.PropertyProof) *evidence.Bundle {
		return p.file(map[int][]evidence.PropertyProof{i: of})
	}
	good := p.prove(p.rangeOf(0, "0", "50"), 0)
	flipped := evidence.PropertyProof{Proof: slices.Clone(good.Proof), Statement: good.Statement}
	flipped.Proof[len(flipped.Proof)/2] ^= 1
	narrower := evidence.PropertyProof{Proof: good.Proof, Statement: written(t, p.rangeOf(0, "0", "49.99"))}
	audience := p.rangeOf(0, "0", "50")
	audience.Audience = "an auditor"
	forAnother := evidence.PropertyProof{Proof: good.Proof, Statement: written(t, audience)}
	moved := evidence.PropertyProof{Proof: good.Proof, Statement: written(t, p.rangeOf(1, "0", "50"))}
	set := p.statement(property.In, 0)
	set.Kind, set.Set = property.Text, []jsontext.Value{jsontext.Value(`"quote"`), jsontext.Value(`"refund"`)}
	set.Members[0].Pointer = "/metadata/action"
	in := p.prove(set, 0)
	unordered := *set
	unordered.Set = []jsontext.Value{set.Set[1], set.Set[0]}
	swapped := evidence.PropertyProof{Proof: in.Proof, Statement: written(t, &unordered)}
	second := p.prove(p.rangeOf(2, "0", "20"), 2)
	wrongKind := p.rangeOf(0, "0", "50")
	wrongKind.Kind = property.Integer
	noMember := p.rangeOf(0, "0", "50")
	noMember.Members[0].Pointer = "/metadata/other"
	two := p.rangeOf(0, "0", "50")
	two.Members = append(two.Members, property.Member{Record: p.records[2].Digest.String(), Pointer: "/metadata/amount"})
	return []proving{
		{"none", p.file(nil), "", "", 0},
		{"a range", at(0, good), verify.Proved, "", 1},
		{"a set", at(0, in), verify.Proved, "", 1},
		{"two on one record", at(0, good, in), verify.Proved, "", 2},
		{"on several records", p.file(map[int][]evidence.PropertyProof{0: {good}, 2: {second}}), verify.Proved, "", 2},
		{"a flipped bit", at(0, flipped), verify.Refuted, "proof", 0},
		{"one good and one with a flipped bit", at(0, good, flipped), verify.Refuted, "proof", 1},
		{"a narrower range than was proved", at(0, narrower), verify.Refuted, "proof", 0},
		{"another audience", at(0, forAnother), verify.Refuted, "proof", 0},
		{"a set in another order", at(0, swapped), verify.Refuted, "proof", 0},
		{"a proof of the value of another record", at(1, moved), verify.Refuted, "proof", 0},
		{"about another record alone", at(1, good), verify.NotProved, "record", 0},
		{"of another kind", at(0, evidence.PropertyProof{Proof: good.Proof, Statement: written(t, wrongKind)}), verify.NotProved, "unprovable", 0},
		{"of a member that is not provable", at(0, evidence.PropertyProof{Proof: good.Proof, Statement: written(t, noMember)}), verify.NotProved, "unprovable", 0},
		{"about two records", at(0, evidence.PropertyProof{Proof: good.Proof, Statement: written(t, two)}), verify.NotProved, "statement", 0},
		{"a statement of no known form", at(0, evidence.PropertyProof{Proof: good.Proof, Statement: jsontext.Value(`{"form":"is_true"}`)}), verify.NotProved, "statement", 0},
		{"one byte", at(0, evidence.PropertyProof{Proof: []byte{0}, Statement: good.Statement}), verify.Refuted, "proof", 0},
	}
}

// TestCarriedProofs verifies files with honest and lying proofs. What a proof says changes nothing in the other guarantees.
func TestCarriedProofs(t *testing.T) {
	p := newPurse(t, "12.5")
	o := p.Options(t)
	for _, c := range provings(t) {
		file := must.Get(c.file.Marshal())(t)
		again := must.Get(evidence.ParseBundle(file))(t)
		r := verify.Bundle(again, o)
		got := r.Of(verify.Property)
		asked := slices.ContainsFunc(r.Guarantees, func(f verify.Finding) bool { return f.Guarantee == verify.Property })
		must.Hold(t, asked == (c.status != "") && (!asked || got.Status == c.status && got.Rule == c.rule) && len(r.Properties) == c.shown,
			"%s: %+v, %d shown", c.name, got, len(r.Properties))
		want := verify.Proved
		if c.status == verify.Refuted {
			want = verify.Refuted
		}
		must.Hold(t, r.Outcome == want, "%s: outcome %s: %+v", c.name, r.Outcome, r.Details)
		for _, f := range r.Guarantees {
			if f.Guarantee != verify.Property && f.Guarantee != verify.NonRepudiation && f.Guarantee != verify.Configuration && f.Status != verify.Proved {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
	}
	o.Require = []verify.Guarantee{verify.Property}
	if r := verify.Bundle(p.file(nil), o); r.Outcome != verify.NotProved || r.Of(verify.Property).Rule != "missing" {
		t.Errorf("nothing is carried: %s, %+v", r.Outcome, r.Of(verify.Property))
	}
	r := verify.Bundle(p.file(map[int][]evidence.PropertyProof{0: {p.prove(p.rangeOf(0, "0", "50"), 0)}}), o)
	must.Equal(t, r.Outcome, verify.Proved)
}

// TestProofsAreBounded: what is beyond a bound is not checked, and does not refute. What stands before it counts.
func TestProofsAreBounded(t *testing.T) {
	p := newPurse(t, "12.5", "30")
	o := p.Options(t)
	good := p.prove(p.rangeOf(0, "0", "50"), 0)
	long := func(s jsontext.Value, n int) evidence.PropertyProof {
		return evidence.PropertyProof{Proof: make([]byte, n), Statement: s}
	}
	alone := p.file(map[int][]evidence.PropertyProof{0: {good, long(good.Statement, evidence.MaxProofs), good}})
	alone.Records[0].Properties[2].Statement = written(t, p.rangeOf(0, "0", "60")) // would be refuted
	r := verify.Bundle(alone, o)
	f := r.Of(verify.Property)
	must.Hold(t, f.Status == verify.NotProved && f.Rule == "volume" && len(r.Properties) == 1, "of one record: %+v, %d shown", f, len(r.Properties))
}

// TestSecondCommitment: a disclosed value that matches the first commitment only refutes the content, by a rule of its own. Once it is
// withheld, nothing shows the lie.
func TestSecondCommitment(t *testing.T) {
	o := newPurse(t, "1").Options(t)
	for _, disclosed := range []bool{true, false} {
		r := twoValues(t)
		if !disclosed {
			r.Disclosures = nil
		}
		got := verify.Record(r, o).Of(verify.Content)
		must.Hold(t, (!disclosed || got.Status == verify.Refuted && got.Rule == "provable") && (disclosed || got.Status == verify.Proved),
			"disclosed %t: %+v", disclosed, got)
	}
}

// twoValues is a record, signed by its actor, whose two commitments are to different values.
func twoValues(t testing.TB) *evidence.Record {
	t.Helper()
	p := newPurse(t, "12.5", "30")
	honest, other := p.records[0], p.records[1]
	salt := honest.Disclosures[1].Salt
	second := must.Get(property.Commit("decimal:2", "/metadata/amount", property.Opening{Value: other.Disclosures[1].Value, Salt: [32]byte(salt)}))(t)
	payload := honest.Payload
	payload.Provable = slices.Clone(payload.Provable)
	payload.Provable[1].Commitment = second.String()
	payload.RecordID, payload.ChainPosition, payload.PreviousRecord, payload.Signers = "", 3, other.Digest, nil
	draft := must.Get(evidence.NewDraft(payload))(t)
	signers := must.Get(p.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
	lie := must.Get(p.Ledger.Seal(t.Context(), draft, signers))(t)
	lie = p.Bundle(t, lie).Records[0]
	lie.Disclosures = honest.Disclosures
	return lie
}

// propertyVectors are about proofs that records carry, and about second commitments.
func propertyVectors(t *testing.T) (list []given) {
	t.Helper()
	o := newPurse(t, "1").Options(t)
	for _, c := range provings(t) {
		list = append(list, givenBundle(t, slug("properties", c.name), c.file, o))
	}
	return append(list, givenRecord(t, "properties-two-commitments-to-different-values", twoValues(t), o))
}

// FuzzCarriedProof puts a foreign statement and a foreign proof on a genuine record. Whatever they are, nothing else that the file proves changes; a
// statement that counts as proved is true of the value, which the fuzz target knows; and one is refuted only if it says something of this very
// record, in a form that can be proved.
func FuzzCarriedProof(f *testing.F) {
	p := newPurse(f, "12.5", "30")
	made := p.prove(p.rangeOf(0, "0", "50"), 0)
	f.Add([]byte(made.Statement), made.Proof)
	f.Add([]byte(made.Statement), made.Proof[:40])
	set := p.statement(property.In, 0)
	set.Kind, set.Set = property.Text, []jsontext.Value{jsontext.Value(`"quote"`), jsontext.Value(`"refund"`)}
	set.Members[0].Pointer = "/metadata/action"
	in := p.prove(set, 0)
	f.Add([]byte(in.Statement), in.Proof)
	f.Add([]byte(`{"form":"is_true"}`), []byte{0})
	o := p.Options(f)
	plain := p.file(nil)
	want := verify.Bundle(plain, o)
	values := map[string]string{"/metadata/amount": "12.5", "/metadata/action": `"quote"`}
	f.Fuzz(func(t *testing.T, statement, proof []byte) {
		form, err := evidence.Canonical(statement)
		if err != nil || len(proof) == 0 {
			t.Skip()
		}
		first, b := *plain.Records[0], *plain
		first.Properties = []evidence.PropertyProof{{Proof: proof, Statement: form}}
		b.Records = append([]*evidence.Record{&first}, plain.Records[1:]...)
		file, err := b.Marshal()
		if err != nil {
			t.Skip()
		}
		read, err := evidence.ParseBundle(file)
		if err != nil {
			return // what the format does not allow is no bundle
		}
		r := verify.Bundle(read, o)
		for _, g := range want.Guarantees {
			have := r.Of(g.Guarantee)
			must.Hold(t, have.Status == g.Status || g.Guarantee == verify.Property, "%s: %s, and without the proof %s", g.Guarantee, have.Status, g.Status)
		}
		s, err := property.ParseStatement(form)
		about := err == nil && len(s.Members) > 0 && s.Members[0].Record == p.records[0].Digest.String()
		switch found := r.Of(verify.Property); {
		case found.Status == verify.Refuted && (err != nil || found.Rule != "proof"):
			t.Errorf("refuted by %q: %v", found.Rule, err)
		case found.Status != verify.Proved:
		case !about || len(s.Members) != 1:
			t.Errorf("%s is proved", form)
		default:
			value := values[s.Members[0].Pointer]
			isTrue, err := s.Allows(jsontext.Value(value))
			must.Hold(t, err == nil && isTrue, "%s is proved of %s: %v", form, value, err)
		}
	})
}

// TestPolicyFile: a policy file is read strictly. Each error names the member.
func TestPolicyFile(t *testing.T) {
	for _, tt := range []struct{ doc, says string }{
		{`{"format":"jurat/policy/v1","name":"court","level":"independent","keys":"owner","time":"qualified","log":"witnessed","strict":true,"require":["configuration"],"demands":[{"demand":"in:/a=b","audience":"me"}]}`, ""},
		{"\ufeff{\"format\": \"jurat/policy/v1\",\r\n \"log\": \"compared\"}", ""},
		{`{"format":"jurat/policy/v2","level":"operator"}`, `format is "jurat/policy/v2"`},
		{`{"level":"operator"}`, "format is"},
		{`{"format":"jurat/policy/v1"}`, "it demands nothing"},
		{`{"format":"jurat/policy/v1","strict":false,"require":[]}`, "it demands nothing"},
		{`{"format":"jurat/policy/v1","level":"best"}`, `level is "best": want one of [signed operator independent independent-qualified]`},
		{`{"format":"jurat/policy/v1","keys":"mine"}`, `keys is "mine"`},
		{`{"format":"jurat/policy/v1","time":"noon"}`, `time is "noon"`},
		{`{"format":"jurat/policy/v1","log":"seen"}`, `log is "seen"`},
		{`{"format":"jurat/policy/v1","require":["truth"]}`, `require/0: unknown guarantee "truth"`},
		{`{"format":"jurat/policy/v1","require":["time","time"]}`, "require/1: time is there twice"},
		{`{"format":"jurat/policy/v1","demands":[{"demand":"in:/a=b","for_all":true}]}`, "for_all"},
		{`{"format":"jurat/policy/v1","demands":[{"demand":""}]}`, "demands/0: demand is empty"},
		{`{"format":"jurat/policy/v1","level":"operator","trust":"me"}`, "trust"},
		{`{"format":"jurat/policy/v1","Level":"operator"}`, "Level"},
		{`{"format":"jurat/policy/v1","level":"operator","level":"signed"}`, "level"},
		{`{"format":"jurat/policy/v1","level":"operator"} {}`, "reading policy"},
		{`[]`, "reading policy"},
		{``, "reading policy"},
	} {
		p, err := verify.ParsePolicy([]byte(tt.doc))
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", tt.doc, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v, %v; want %q", tt.doc, p, err, tt.says)
		}
	}
}

// TestBlankDemands: a demand that was left blank is an error, as a word that is none.
func TestBlankDemands(t *testing.T) {
	for _, name := range []string{"level", "keys", "time", "log"} {
		for _, blank := range []string{`""`, "null"} {
			doc := `{"format":"jurat/policy/v1","strict":true,"` + name + `":` + blank + `}`
			p, err := verify.ParsePolicy([]byte(doc))
			must.Hold(t, err != nil && strings.Contains(err.Error(), name+" is empty"), "%s: %v, %v", doc, p, err)
		}
	}
}

// TestPolicyFingerprint: it is that of the canonical form, so spelling does not change it, and content does.
func TestPolicyFingerprint(t *testing.T) {
	of := func(doc string) string {
		var o verify.Options
		must.Do(t, o.Adopt(must.Get(verify.ParsePolicy([]byte(doc)))(t)))
		return o.PolicyFile.Fingerprint.String()
	}
	one := of(`{"format":"jurat/policy/v1","level":"operator","time":"independent"}`)
	must.Hold(t, of("{ \"time\": \"independent\",\n \"level\": \"operator\", \"format\": \"jurat/policy/v1\" }") == one,
		"another spelling has another fingerprint")
	must.Hold(t, of(`{"format":"jurat/policy/v1","level":"operator","time":"qualified"}`) != one, "another demand has the same fingerprint")
}

// TestNeedsAreJoined: of two demands on one part the stronger counts, and two levels are an error.
func TestNeedsAreJoined(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want verify.Need
	}{
		{"keys=ca", "keys=owner", verify.Need{Keys: verify.KeysByOwner}}, {"keys=owner", "keys=ca", verify.Need{Keys: verify.KeysByOwner}},
		{"time=qualified", "time=operator", verify.Need{Time: verify.QualifiedClock}},
		{"log=witnessed", "log=compared", verify.Need{Log: verify.LogBoth}}, {"log=alone", "log=compared", verify.Need{Log: verify.LogCompared}},
		{"log=compared", "log=alone", verify.Need{Log: verify.LogCompared}},
		{"independent", "log=witnessed", verify.Need{Level: verify.LevelIndependent, Log: verify.LogWitnessed}},
	} {
		a, errA := verify.ParseNeed(tt.a)
		b, errB := verify.ParseNeed(tt.b)
		got, err := a.With(b)
		must.Hold(t, err == nil && errA == nil && errB == nil && got == tt.want, "%s and %s: %+v, %v", tt.a, tt.b, got, err)
	}
	must.Refuse(t, "", "two levels were accepted")((verify.Need{Level: verify.LevelSigned}).With(verify.Need{Level: verify.LevelOperator}))
	for _, bad := range []string{"keys=", "keys=mine", "log=x", "best", "place=here", ""} {
		n, err := verify.ParseNeed(bad)
		must.Hold(t, bad == "" || err != nil, "%q: %+v", bad, n)
	}
}

// TestWhatCountsIsSaid: every guarantee that can stay unproved in a file that passes has a reason why it does not count.
func TestWhatCountsIsSaid(t *testing.T) {
	for _, kind := range []verify.Kind{verify.OneRecord, verify.ManyRecords, verify.Trial, verify.SeveralFiles, verify.OneCheckpoint} {
		for _, g := range verify.Guarantees() {
			counts := func(policy verify.Policy, level verify.Level) bool {
				return verify.Counts(kind, g, policy, level)
			}
			must.Hold(t, counts(verify.Default, "") || verify.WhyUncounted(kind, g) != "", "%s, %s: no reason", kind, g)
			must.Hold(t, counts(verify.Default, "") == counts(verify.Default, verify.LevelOperator),
				"%s, %s: the level operator is not what counts by default", kind, g)
			if counts(verify.Default, verify.LevelOperator) && (!counts(verify.Default, verify.LevelIndependent) || !counts(verify.Default, verify.LevelQualified)) {
				t.Errorf("%s, %s: a higher level counts less", kind, g)
			}
			must.Hold(t, kind == verify.OneCheckpoint || !counts(verify.Default, verify.LevelSigned) || counts(verify.Default, verify.LevelOperator),
				"%s, %s: the lowest level counts more", kind, g)
		}
	}
}

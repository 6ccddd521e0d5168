package reputation

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestIdentity: who the agent is, is for the trust file to say, and never guessed.
func TestIdentity(t *testing.T) {
	agents, jurors := []evidence.Role{evidence.RoleAgent}, []evidence.Role{evidence.RoleJuror}
	key := trust.Key{Name: "desk", Role: evidence.RoleAgent}
	one, other := trust.CA{Name: "one", Roles: agents}, trust.CA{Name: "other", Roles: agents}
	tests := map[string]struct {
		trust trust.Trust
		name  string
		ca    string
		by    string // "": refused
	}{
		"by its key":                                  {trust.Trust{Keys: []trust.Key{key}}, "desk", "", "keys"},
		"by its key, beside CAs":                      {trust.Trust{Keys: []trust.Key{key}, CAs: []trust.CA{one, other}}, "desk", "", "keys"},
		"by the CA, although it has a key":            {trust.Trust{Keys: []trust.Key{key}, CAs: []trust.CA{one, other}}, "desk", "other", "cas"},
		"by the only CA":                              {trust.Trust{CAs: []trust.CA{one}}, "desk", "", "cas"},
		"two CAs":                                     {trust.Trust{CAs: []trust.CA{one, other}}, "desk", "", ""},
		"two CAs of one name":                         {trust.Trust{CAs: []trust.CA{one, one}}, "desk", "one", ""},
		"a CA for others":                             {trust.Trust{CAs: []trust.CA{{Name: "one", Roles: jurors}}}, "desk", "", ""},
		"a CA that is not there":                      {trust.Trust{CAs: []trust.CA{one}}, "desk", "two", ""},
		"a key of the name in another role":           {trust.Trust{Keys: []trust.Key{{Name: "desk", Role: evidence.RoleJuror}}}, "desk", "", ""},
		"by its name, as recorders tell it":           {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}}, "desk", "", "keys"},
		"by a CA, beside recorders":                   {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}, CAs: []trust.CA{one}}, "desk", "", "cas"},
		"by a CA that is not there, beside recorders": {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}}, "desk", "two", ""},
		"no name": {trust.Trust{Keys: []trust.Key{key}}, "", "", ""},
	}
	for name, tt := range tests {
		me, err := identityOf(&tt.trust, tt.name, tt.ca)
		must.Hold(t, (tt.by == "") == errors.Is(err, ErrIdentity) && (err != nil || me.By == tt.by && (tt.ca == "" || me.CA == tt.ca)),
			"%s: %+v, %v", name, me, err)
	}
}

// TestOwnSide: neighbours do not judge each other, as far as the trust file and the policy say who they are.
func TestOwnSide(t *testing.T) {
	byKey, byCA := Identity{Name: "desk", By: byKeys}, Identity{Name: "desk", By: byCAs, CA: "acme"}
	zoe := Rater{Role: evidence.RoleSubmitter, Name: "zoe", By: byKeys}
	certified := Rater{Role: evidence.RoleJuror, Name: "ren", By: byCAs, CA: "acme"}
	group := func(cas []string, actors ...Actor) func(*Policy) {
		return func(p *Policy) { p.Organisations = []Organisation{{Name: "group", Actors: actors, CAs: cas}} }
	}
	me := Actor{evidence.RoleAgent, "desk"}
	tests := map[string]struct {
		me     Identity
		rater  Rater
		policy func(*Policy)
		own    bool
	}{
		"a stranger":                        {byKey, zoe, nil, false},
		"the agent's name":                  {byKey, Rater{Role: evidence.RoleJuror, Name: "desk"}, nil, true},
		"the same CA":                       {byCA, certified, nil, true},
		"the same CA, shared by many":       {byCA, certified, func(p *Policy) { p.SharedCAs = []string{"acme"} }, false},
		"a CA, and an agent by its key":     {byKey, certified, nil, false},
		"no organisation on either side":    {byKey, Rater{Role: evidence.RoleJuror, Name: "ren", By: byKeys}, nil, false},
		"one group":                         {byKey, zoe, group(nil, me, Actor{evidence.RoleSubmitter, "zoe"}), true},
		"the name in another role":          {byKey, zoe, group(nil, me, Actor{evidence.RoleReviewer, "zoe"}), false},
		"a group without the agent":         {byKey, zoe, group(nil, Actor{evidence.RoleSubmitter, "zoe"}), false},
		"a group by the agent's CA":         {byCA, zoe, group([]string{"acme"}, Actor{evidence.RoleSubmitter, "zoe"}), true},
		"a group by the rater's CA":         {byKey, certified, group([]string{"acme"}, me), true},
		"a group of a CA that neither uses": {byKey, zoe, group([]string{"third"}, me), false},
	}
	for name, tt := range tests {
		p := DefaultPolicy()
		if tt.policy != nil {
			tt.policy(p)
		}
		c := &computation{facts: &Facts{Identity: tt.me}, policy: p}
		must.Hold(t, c.ownSide(tt.rater) == tt.own, "%s: own side: %v, want %v", name, !tt.own, tt.own)
	}
}

// TestLyingSubmission: what the jury saw must be the records that the submission names.
func TestLyingSubmission(t *testing.T) {
	good, bad := `{"action_type":"model_output","agent_id":"desk","response":"good"}`, `{"action_type":"model_output","agent_id":"desk","response":"bad"}`
	goodDigest, badDigest := evidence.DigestOf([]byte(good)), evidence.DigestOf([]byte(bad))
	exhibit := func(digest evidence.Digest, payload string) string {
		return fmt.Sprintf(`{"digest":%q,"payload":%s}`, digest, payload)
	}
	of := func(exhibits ...string) jsontext.Value {
		return jsontext.Value(`{"records":[` + strings.Join(exhibits, ",") + `]}`)
	}
	apart := []string{"/response"}
	tests := map[string]struct {
		payload    evidence.Payload
		name       string
		exhibits   int
		transcript bool
	}{
		"honest":                          {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{goodDigest}}, "desk", 1, false},
		"from before saw":                 {evidence.Payload{Response: of(exhibit(goodDigest, good))}, "desk", 1, false},
		"another record's digest":         {evidence.Payload{Response: of(exhibit(badDigest, good))}, "desk", 0, false},
		"another record in saw":           {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{badDigest}}, "desk", 0, false},
		"one record more in saw":          {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{goodDigest, badDigest}}, "desk", 0, false},
		"erased":                          {evidence.Payload{Response: jsontext.Value(`"sha256:0"`), SealedApart: apart, Saw: []evidence.Digest{goodDigest}}, "", 1, false},
		"erased, from before saw":         {evidence.Payload{Response: jsontext.Value(`"sha256:0"`), SealedApart: apart}, "", 0, true},
		"a transcript":                    {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"desk"},"conversation":[]}`)}, "desk", 0, true},
		"no object":                       {evidence.Payload{Response: jsontext.Value(`7`)}, "", 0, true},
		"records that are no records":     {evidence.Payload{Response: jsontext.Value(`{"records":[7,null]}`)}, "", 0, true},
		"a payload that is no object":     {evidence.Payload{Response: of(exhibit(goodDigest, "7"))}, "", 0, false},
		"a digest that is none":           {evidence.Payload{Response: jsontext.Value(`{"records":[{"digest":"x","payload":{}}]}`)}, "", 0, true},
		"a payload that is left out":      {evidence.Payload{Response: jsontext.Value(`{"records":[{"digest":"` + goodDigest.String() + `"}]}`)}, "", 0, false},
		"a transcript with saw":           {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"desk"},"conversation":[]}`), Saw: []evidence.Digest{goodDigest}}, "desk", 0, true},
		"a card of another, and a record": {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"other"},"records":[` + exhibit(goodDigest, good) + `]}`)}, "desk", 1, false},
	}
	for name, tt := range tests {
		s := readSubmission(&evidence.Record{Payload: tt.payload})
		must.Hold(t, s.name == tt.name && len(s.exhibits) == tt.exhibits && s.transcript == tt.transcript, "%s: %+v", name, s)
	}
}

func TestPolicyIsStrict(t *testing.T) {
	for doc, want := range map[string]string{
		`{"format":"jurat/reputation-policy/v1"}`:                            "",
		`{"format":"jurat/reputation-policy/v1","minimum":30,"panels":null}`: "",
		`{}`: "format",
		`{"format":"jurat/reputation-policy/v1","halflife":3}`:                                                         "halflife",
		`{"format":"jurat/reputation-policy/v1","half_life_days":0}`:                                                   "leave it out",
		`{"format":"jurat/reputation-policy/v1","minimum":9}`:                                                          "minimum is 9",
		`{"format":"jurat/reputation-policy/v1","clock":"mine"}`:                                                       "clock",
		`{"format":"jurat/reputation-policy/v1","organisations":[{"name":"x","actors":[],"cas":[]}]}`:                  "organisations/0",
		`{"format":"jurat/reputation-policy/v1","organisations":[{"name":"x","actors":[{"role":"king","name":"y"}]}]}`: "actors/0",
		`{"format":"jurat/reputation-policy/v1","minimum":10,"minimum":11}`:                                            "minimum",
		`[]`: "",
	} {
		p, err := ParsePolicy([]byte(doc))
		switch {
		case doc == "[]" && err == nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", doc, err)
		case want == "" && doc != "[]" && err != nil:
			t.Errorf("%s: %v", doc, err)
		case err == nil:
			must.Fail(t, nil)(p.Fingerprint())
		}
	}
	short := must.Get(ParsePolicy([]byte(`{"format":"jurat/reputation-policy/v1"}`)))(t)
	a, _ := short.Fingerprint()
	b, _ := DefaultPolicy().Fingerprint()
	must.Hold(t, a == b, "what is left out changes the fingerprint")
}

// TestWithheldSubmission: a submission whose text is withheld does not say whose acts the jury judged, and a log's entries count what a recorder saw for the recorder. So a judgment
// that the log counts about the agent is weighed only while each exhibit is at hand: whoever leaves out the act that failed hides nothing.
func TestWithheldSubmission(t *testing.T) {
	house := jurattest.New(t)
	_, err := house.Keys.Signers(t.Context(), evidence.RoleRecorder, "gate")
	must.Do(t, err)
	options := house.Options(t)
	options.At = jurattest.Start.Add(24 * time.Hour)
	now := evidence.FormatTime(jurattest.Start)
	act := func(seen string) *evidence.Record {
		return &evidence.Record{Digest: evidence.DigestOf([]byte(seen)), Payload: evidence.Payload{RecordID: seen, ActionType: evidence.ObservedCall, AgentID: "gate", Timestamp: now,
			Observed: &evidence.Observed{Agent: seen, Judged: evidence.JudgedAgent}}}
	}
	own, others := act("desk"), act("another")
	counted := evidence.LogCounts{ActorSeq: 1, Subject: evidence.SubjectTag(evidence.RoleAgent, "desk"), SubjectSeq: 1}
	trial := func(exhibit *evidence.Record) []*evidence.Record {
		return []*evidence.Record{
			{Digest: evidence.DigestOf([]byte("s")), Payload: evidence.Payload{RecordID: "s", ActionType: evidence.Submission, Timestamp: now, Response: jsontext.Value(`"hmac-sha256:0"`),
				SealedApart: []string{"/response"}, Saw: []evidence.Digest{exhibit.Digest}}},
			{Digest: evidence.DigestOf([]byte("j")), Payload: evidence.Payload{RecordID: "j", ActionType: evidence.FinalJudgment, Timestamp: now}, Log: counted.At(1)}}
	}
	for name, c := range map[string]struct {
		exhibit *evidence.Record
		shown   []*evidence.Record
		want    verify.Status
	}{
		"the exhibit is not at hand":       {own, nil, verify.NotProved},
		"another's is not at hand, either": {others, nil, verify.NotProved},
		"the exhibit is somebody else's":   {others, []*evidence.Record{others}, verify.Proved},
	} {
		g := must.Get(NewGatherer(Config{Agent: "desk", Options: options}))(t)
		report := &verify.Report{Kind: verify.Trial, TrialOutcome: &jury.TrialOutcome{Verdict: jury.Verdict{Position: jury.UnsafeFail}}}
		for _, one := range ofTrial {
			report.Guarantees = append(report.Guarantees, verify.Finding{Guarantee: one, Status: verify.Proved})
		}
		f := &taken{g: g, report: report, origin: "log", doubts: map[string][]verify.Finding{}}
		records := trial(c.exhibit)
		for _, r := range append(c.shown, records...) {
			f.record(r)
		}
		f.trial(records, func() *evidence.Bundle { return nil })
		g.Log(LogFact{Origin: "log", Size: 2, Actor: []evidence.Digest{}, Subject: []evidence.Digest{evidence.DigestOf([]byte("j"))}})
		v := must.Get(g.View())(t)
		got := v.Completeness[0].Judgments
		must.Hold(t, got.Status == c.want && len(v.LeftOut) != 0, "%s: %+v, want %s; left out: %+v", name, got, c.want, v.LeftOut)
	}
}

// TestDisclosedSubmission: a submission that was sealed apart from the start names the agent to those who have its text, though the log counts its judgment for nobody.
func TestDisclosedSubmission(t *testing.T) {
	h := jurattest.New(t)
	id := evidence.RecordIDFor("", "a trial")
	r := h.Seal(t, evidence.Payload{RecordID: id, ActionType: evidence.Submission, AgentID: "submitter", Timestamp: evidence.FormatTime(h.Now()), ChainID: evidence.TrialPrefix + id, ChainPosition: 1,
		Case: evidence.DigestOf([]byte("case")), Response: jsontext.Value(`{"agentCard":{"name":"desk"},"conversation":[]}`)}, "/response")
	s := readSubmission(r)
	must.Hold(t, s.name == "desk" && !s.withheld, "%+v", s)
	r.Disclosures = nil
	s = readSubmission(r)
	must.Hold(t, s.name == "" && s.withheld, "%+v", s)
	must.Get(h.Keys.Signers(t.Context(), evidence.RoleAgent, "desk"))(t)
	options := h.Options(t)
	options.At = jurattest.Start.Add(24 * time.Hour)
	g := must.Get(NewGatherer(Config{Agent: "desk", Options: options}))(t)
	judgment := &evidence.Record{Digest: evidence.DigestOf([]byte("j")), Payload: evidence.Payload{RecordID: "j", ActionType: evidence.FinalJudgment}, Log: &evidence.LogProof{Index: 1, ActorSeq: 1}}
	for n, name := range []string{"", "desk"} { // without the text, and with it
		submission := &evidence.Record{Payload: evidence.Payload{ActionType: evidence.Submission, Response: jsontext.Value(fmt.Sprintf(`{"agentCard":{"name":%q}}`, name))}}
		f := &taken{g: g, report: &verify.Report{Kind: verify.Trial}, origin: "log", doubts: map[string][]verify.Finding{}}
		f.trial([]*evidence.Record{submission, judgment}, func() *evidence.Bundle { return nil })
		must.Hold(t, len(g.trials) == n, "%q: %d trials", name, len(g.trials))
	}
}

// TestWilsonRounds checks the roots by what they must be, and the bounds against floating point, which is never off by more
// than one.
func TestWilsonRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		good, bad := r.Int64N(one<<(i%24)), 10*one+r.Int64N(one)
		if i%2 == 0 {
			good, bad = bad, good
		}
		made := terms(good, bad)
		n := big.NewInt(good + bad)
		radicand := new(big.Int).Mul(big.NewInt(one), new(big.Int).Mul(big.NewInt(good), big.NewInt(bad)))
		radicand.Add(radicand, new(big.Int).Mul(n, new(big.Int).Mul(big.NewInt(one), big.NewInt(one))))
		radicand.Mul(radicand, big.NewInt(400_000_000))
		square := func(root *big.Int, more int64) int {
			x := new(big.Int).Add(root, big.NewInt(more))
			return x.Mul(x, x).Mul(x, n).Cmp(radicand)
		}
		must.Need(t, square(made.down, 0) <= 0 && square(made.down, 1) > 0 && square(made.up, 0) >= 0 && square(made.up, -1) < 0,
			"%d good, %d bad: %v and %v are not the roots", good, bad, made.down, made.up)
		got := wilson(good, bad)
		g, b := float64(good)/one, float64(bad)/one
		root := 2 * math.Sqrt(g*b/(g+b)+1)
		lower, upper := 10_000*(g+2-root)/(g+b+4), 10_000*(g+2+root)/(g+b+4)
		if math.Abs(float64(got.Lower)-math.Floor(lower)) > 1 || math.Abs(float64(got.Upper)-math.Floor(upper)) > 1 || got.Lower < 0 || got.Upper > 10_000 || got.Lower > got.Upper {
			t.Fatalf("%d good, %d bad: %+v, want %f and %f", good, bad, got, lower, upper)
		}
	}
	for _, tt := range []struct{ good, bad, lower, upper int64 }{{10, 0, 7142, 10_000}, {0, 10, 0, 2857}, {12, 1, 6603, 9866}, {500, 500, 4684, 5315}} {
		got := wilson(tt.good*one, tt.bad*one)
		must.Hold(t, got.Lower == tt.lower && got.Upper == tt.upper, "%+v: %+v", tt, got)
	}
}

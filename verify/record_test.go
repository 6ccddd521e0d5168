package verify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

func output(agent string) evidence.Payload {
	return evidence.Payload{AgentID: agent, RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{"temperature":0.2}`)}
}

// standalone seals one payload and returns its record as it would be served, with the options that prove it.
func standalone(t *testing.T, p evidence.Payload, apart ...string) (*evidence.Record, verify.Options) {
	t.Helper()
	return standaloneIn(t, jurattest.New(t), p, apart...)
}

func standaloneIn(t testing.TB, h *jurattest.House, p evidence.Payload, apart ...string) (*evidence.Record, verify.Options) {
	t.Helper()
	r := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, p, apart...)))(t)
	o := h.Options(t)
	report := verify.Record(r, o)
	must.Need(t, report.Outcome == verify.Proved, "the honest record: %+v", report.Details)
	return r, o
}

// A recordBreak breaks one thing, in a record or in the reader's trust.
type recordBreak struct {
	name      string
	change    func(r *evidence.Record, o *verify.Options)
	guarantee verify.Guarantee
	status    verify.Status
	rule      string
	says      string
}

func recordBreaks() []recordBreak {
	stamped := jurattest.Start // the mock's time
	return []recordBreak{
		{"no trust", func(r *evidence.Record, o *verify.Options) { o.Trust = nil },
			verify.Authentication, verify.NotProved, "unknown-key", "no trust file"},
		{"a key nobody knows", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys = nil },
			verify.Content, verify.NotProved, "unknown-key", "has no key"},
		{"a key of another agent", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Name = "b" },
			verify.Authentication, verify.Refuted, "actor", `the key of agent "b"`},
		{"a key of another role", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Role = evidence.RoleJuror },
			verify.Authentication, verify.Refuted, "actor", `the key of juror "a"`},
		{"a signature that was changed", func(r *evidence.Record, o *verify.Options) { r.Signatures[0][9] ^= 1 },
			verify.Content, verify.Refuted, "signature", "signature 0"},
		{"a key not yet valid", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].NotBefore = stamped.Add(time.Second) },
			verify.Authentication, verify.Refuted, "validity", "before the key was valid"},
		{"a key no longer valid", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].NotAfter = stamped.Add(-time.Second) },
			verify.Authentication, verify.NotProved, "validity", "valid only until"},
		{"a key with an end, and no proved time", func(r *evidence.Record, o *verify.Options) {
			o.Trust.Keys[0].NotAfter, r.Timestamps = stamped.Add(time.Hour), nil
		}, verify.Authentication, verify.NotProved, "validity", "time of signing is not proved"},
		{"the operator's key", func(r *evidence.Record, o *verify.Options) {},
			verify.NonRepudiation, verify.NotProved, "custody", "the operator keeps the key"},
		{"the owner's key", func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Custody = trust.ByOwner },
			verify.NonRepudiation, verify.Proved, "", "keep their keys themselves"},
		{"no token", func(r *evidence.Record, o *verify.Options) { r.Timestamps = nil },
			verify.Time, verify.NotProved, "pending", "pending since 2026-01-01T00:00:00Z"},
		{"a token that is none", func(r *evidence.Record, o *verify.Options) { r.Timestamps[0].Token = []byte("token") },
			verify.Time, verify.NotProved, "authority", "time stamp 0: parsing time stamp token: malformed at byte 0: ContentInfo"},
		{"an authority nobody trusts", func(r *evidence.Record, o *verify.Options) { o.Trust.Authorities = nil },
			verify.Time, verify.NotProved, "authority", "trusts no time-stamping authority"},
		{"the mock authority", func(r *evidence.Record, o *verify.Options) { o.UnsafeAllowMock = false },
			verify.Time, verify.NotProved, "authority", "mock"},
		{"the operator's clock", func(r *evidence.Record, o *verify.Options) {},
			verify.Time, verify.Proved, "", "only as far as the operator's clock"},
		{"an independent clock", func(r *evidence.Record, o *verify.Options) { o.Trust.Authorities[0].Clock = trust.Independent },
			verify.Time, verify.Proved, "", "authorities that the reader trusts"},
		{"a claim after the proved time", func(r *evidence.Record, o *verify.Options) { r.Payload.Timestamp = "2026-01-01T00:05:01Z" },
			verify.Time, verify.NotProved, "skew", "one of the two clocks is wrong"},
		{"a claim within the tolerance", func(r *evidence.Record, o *verify.Options) { r.Payload.Timestamp = "2026-01-01T00:05:00Z" },
			verify.Time, verify.Proved, "", ""},
		{"policies that the token has not", func(r *evidence.Record, o *verify.Options) {
			o.Trust = withPolicy(o.Trust, "1.2.3")
		}, verify.Time, verify.NotProved, "authority", "policy"},
		{"the policy that the token has", func(r *evidence.Record, o *verify.Options) {
			o.Trust = withPolicy(o.Trust, timestamp.MockPolicy().String())
		}, verify.Time, verify.Proved, "", ""},
		{"before a later moment", func(r *evidence.Record, o *verify.Options) { o.Before = stamped.Add(time.Second) },
			verify.Before, verify.Proved, "operator-clock", "existed before"},
		{"before the very moment", func(r *evidence.Record, o *verify.Options) { o.Before = stamped },
			verify.Before, verify.NotProved, "time", "not before"},
		{"before, and no proved time", func(r *evidence.Record, o *verify.Options) {
			o.Before, r.Timestamps = stamped.Add(time.Second), nil
		}, verify.Before, verify.NotProved, "time", "its time is not proved"},
		{"no proof of its place", func(r *evidence.Record, o *verify.Options) { r.Log = nil },
			verify.Order, verify.NotProved, "checkpoint", "no checkpoint"},
		{"another place", func(r *evidence.Record, o *verify.Options) { r.Log.Index = 7 },
			verify.Order, verify.Refuted, "inclusion", "covers 1 entry"},
		{"a log nobody knows", func(r *evidence.Record, o *verify.Options) { o.Trust.Logs = nil },
			verify.Order, verify.NotProved, "checkpoint", "no log that the trust file names"},
		{"a checkpoint in other bytes", func(r *evidence.Record, o *verify.Options) {
			r.Log.Checkpoint = looseBase64(r.Log.Checkpoint)
		}, verify.Order, verify.Refuted, "checkpoint", "not in the one form"},
		{"a checkpoint that was changed", func(r *evidence.Record, o *verify.Options) {
			r.Log.Checkpoint = strings.Replace(r.Log.Checkpoint, "\n1\n", "\n2\n", 1)
		}, verify.Order, verify.Refuted, "checkpoint", "not what the log signed"},
	}
}

// TestEveryRuleOfARecord breaks one thing at a time, in the record or in the reader's trust.
func TestEveryRuleOfARecord(t *testing.T) {
	for _, tt := range recordBreaks() {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, output("a"))
			tt.change(r, &o)
			report := verify.Record(r, o)
			got := report.Of(tt.guarantee)
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule && strings.Contains(got.Reason, tt.says),
				"%+v; want %s by rule %q, saying %q", got, tt.status, tt.rule, tt.says)
			must.Hold(t, tt.status != verify.Refuted || report.Outcome == verify.Refuted, "outcome %s", report.Outcome)
			must.Hold(t, tt.guarantee == verify.NonRepudiation || tt.status != verify.NotProved || report.Outcome != verify.Proved,
				"outcome %s", report.Outcome)
		})
	}
}

// withPolicy is a trust that accepts one policy of its authority.
func withPolicy(t *trust.Trust, oid string) *trust.Trust {
	changed := *t
	changed.Authorities = slices.Clone(t.Authorities)
	changed.Authorities[0].Policies = []string{oid}
	doc, err := changed.Marshal()
	if err != nil {
		panic(err)
	}
	parsed, err := trust.Parse(doc)
	if err != nil {
		panic(err)
	}
	return parsed
}

// looseBase64 changes the unused bits of a signature's base64.
func looseBase64(checkpoint string) string {
	body := strings.TrimRight(checkpoint, "=\n")
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(digits, body[len(body)-1])
	return body[:len(body)-1] + digits[last^1:last^1+1] + checkpoint[len(body):]
}

// TestCheckpointOfAnotherLog: a log that the reader trusts cannot speak for another log.
func TestCheckpointOfAnotherLog(t *testing.T) {
	r, o := standalone(t, output("a"))
	private, public, err := note.GenerateKey(nil, "other.example/log")
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	text, _, _ := strings.Cut(r.Log.Checkpoint, "\n\n")
	signed := must.Get(note.Sign(&note.Note{Text: text + "\n"}, signer))(t)
	r.Log.Checkpoint, o.Trust.Logs = string(signed), []string{public}
	got := verify.Record(r, o).Of(verify.Order)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "checkpoint", "%+v", got)
}

// TestEarliestTokenCounts: of several tokens, the earliest proves the most, with its accuracy added.
func TestEarliestTokenCounts(t *testing.T) {
	r, o := standalone(t, output("a"))
	later, root := laterToken(t, r)
	for _, stamps := range [][]evidence.Timestamp{{r.Timestamps[0], later}, {later, r.Timestamps[0]}} {
		both := *r
		both.Timestamps = stamps
		o := o
		o.Trust = withAuthority(o.Trust, root)
		report := verify.Record(&both, o)
		got, ok := report.TimeOf(r.Payload.RecordID)
		must.Hold(t, ok && got.Time.Equal(jurattest.Start), "time %+v, want the mock's", got)
	}
}

// laterToken is a second authority's token over a record, of an hour after the mock's time.
func laterToken(t *testing.T, r *evidence.Record) (evidence.Timestamp, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	config := timestamp.CertificateConfig{Key: key, Serial: big.NewInt(5), NotBefore: jurattest.Start, NotAfter: jurattest.Start.AddDate(1, 0, 0)}
	root, err := timestamp.NewRoot(config)
	must.Do(t, err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	config.Key = leafKey
	leaf, err := timestamp.NewCertificate(config, root, key)
	must.Do(t, err)
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: leafKey, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return jurattest.Start.Add(time.Hour) }})
	must.Do(t, err)
	token := must.Get(authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: token}, root
}

func withAuthority(t *trust.Trust, root *x509.Certificate) *trust.Trust {
	changed := *t
	changed.Authorities = append(slices.Clone(t.Authorities), trust.Authority{Name: "second", Certificate: root.Raw, Clock: trust.Independent})
	doc, err := changed.Marshal()
	if err != nil {
		panic(err)
	}
	parsed, err := trust.Parse(doc)
	if err != nil {
		panic(err)
	}
	return parsed
}

// TestOneActIsNoTrial: a genuine judgment alone does not show that it follows from the votes.
func TestOneActIsNoTrial(t *testing.T) {
	h := jurattest.New(t)
	for _, act := range h.Try(t, jury.MajorityVote).Records {
		r := must.Get(h.Ledger.ProveOne(t.Context(), act))(t)
		report := verify.Record(r, h.Options(t))
		got := report.Of(verify.Verdict)
		must.Hold(t, report.Outcome == verify.NotProved && got.Rule == "one-act", "%s: %s, %+v", act.Payload.ActionType, report.Outcome, got)
	}
}

func TestEmptyBundleProvesNothing(t *testing.T) {
	for _, f := range verify.Bundle(&evidence.Bundle{}, verify.Options{Trust: new(trust.Trust)}).Guarantees {
		must.Hold(t, f.Status == verify.NotProved, "%+v", f)
	}
}

func TestReportForARecord(t *testing.T) {
	r, o := standalone(t, output("a"))
	report := verify.Record(r, o)
	id := r.Payload.RecordID
	for g, want := range map[verify.Guarantee]verify.Status{verify.Content: verify.Proved, verify.NonRepudiation: verify.NotProved,
		verify.Before: verify.NotProved, verify.Verdict: verify.NotProved} {
		got := report.For(g, id)
		must.Hold(t, got.Status == want, "%s: %+v, want %s", g, got, want)
	}
}

func TestSealedApart(t *testing.T) {
	opened, o := standalone(t, output("a"), "/prompt", "/response")
	withheld := *opened
	withheld.Disclosures = nil
	report := verify.Record(&withheld, o)
	must.Hold(t, report.Outcome == verify.Proved, "withheld: %+v", report.Details)
	opened.Disclosures[1].Value = jsontext.Value(`"The A7."`)
	got := verify.Record(opened, o).Of(verify.Content)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "disclosure" && strings.Contains(got.Reason, "/response"), "wrongly disclosed: %+v", got)
}

// TestCausality: a record cannot name a later one.
func TestCausality(t *testing.T) {
	h := jurattest.New(t)
	p := output("a")
	first := h.Seal(t, p)
	p.RequestID, p.Saw = "r2", []evidence.Digest{first.Digest}
	second := h.Seal(t, p)
	b := h.Bundle(t, first, second)
	report := verify.Bundle(b, h.Options(t))
	must.Need(t, report.Outcome == verify.Proved, "honest: %+v", report.Details)
	slices.Reverse(b.Records)
	b.Records[0].Log.Index, b.Records[1].Log.Index = b.Records[1].Log.Index, b.Records[0].Log.Index
	got := verify.Bundle(b, h.Options(t))
	must.Hold(t, slices.ContainsFunc(got.Details, func(f verify.Finding) bool { return f.Rule == "causality" && f.Status == verify.Refuted }),
		"a record that saw a later one: %+v", got.Details)
}

func TestFileThatIsNotOurs(t *testing.T) {
	for _, file := range []string{"", "{}", "A text about jurat/evidence/v1 and jurat/bundle/v1.", `{"records":[]}`, "hello", "\x00\x01", `{"format":"other"}`} {
		r, err := verify.File([]byte(file), verify.Options{})
		must.Hold(t, err != nil, "%q: %+v", file, r)
	}
}

// TestAnswers: the answer for a record is the worst finding about it or about all records, and the first of these.
func TestAnswers(t *testing.T) {
	f := func(g verify.Guarantee, s verify.Status, record, reason string) verify.Finding {
		return verify.Finding{Guarantee: g, Status: s, Record: record, Reason: reason}
	}
	r := &verify.Report{
		Guarantees: []verify.Finding{f(verify.Content, verify.NotProved, "b", "1"), f(verify.Authentication, verify.Refuted, "", "3"), f(verify.Time, verify.Proved, "", ""), f(verify.Order, verify.NotProved, "", "no details")},
		Details: []verify.Finding{f(verify.Content, verify.NotProved, "b", "1"), f(verify.Authentication, verify.NotProved, "a", "2"), f(verify.Authentication, verify.Refuted, "", "3"),
			f(verify.Authentication, verify.Refuted, "a", "4"), f(verify.Content, verify.NotProved, "b", "5")},
		Times: []trust.TimeOf{{Record: "a", ProvedTime: trust.ProvedTime{Authority: "x"}}, {Record: "a", ProvedTime: trust.ProvedTime{Authority: "y"}}},
	}
	for _, tt := range []struct {
		record string
		want   verify.Finding
	}{
		{"a", f(verify.Content, verify.Proved, "a", "")}, {"b", r.Details[0]}, {"c", f(verify.Content, verify.Proved, "c", "")}, {"", f(verify.Content, verify.Proved, "", "")},
		{"a", r.Details[2]}, {"b", r.Details[2]}, {"", r.Details[2]},
		{"a", r.Guarantees[2]}, {"a", r.Guarantees[3]}, {"a", f(verify.Verdict, verify.NotProved, "", "not asked")},
	} {
		must.Equal(t, cmp.Diff(tt.want, r.For(tt.want.Guarantee, tt.record)), "", tt.want.Guarantee, "of", tt.record)
	}
	for record, want := range map[string]string{"a": "x", "b": "", "": ""} {
		got, ok := r.TimeOf(record)
		must.Hold(t, ok == (want != "") && got.Authority == want, "the time of %q: %+v, %v", record, got, ok)
	}
}

// TestFindingsThatSayTheSameAreOneGroup: the answer stands first, once, and what is of another guarantee is left out.
func TestFindingsThatSayTheSameAreOneGroup(t *testing.T) {
	of := func(g verify.Guarantee, s verify.Status, rule, record string) verify.Finding {
		return verify.Finding{Guarantee: g, Status: s, Rule: rule, Record: record, Reason: "of " + record}
	}
	answer := of(verify.Time, verify.Refuted, "token", "c")
	r := &verify.Report{Details: []verify.Finding{of(verify.Time, verify.NotProved, "pending", "a"), of(verify.Content, verify.Refuted, "token", "a"),
		of(verify.Time, verify.NotProved, "pending", "b"), answer, of(verify.Time, verify.Refuted, "token", "d"), of(verify.Time, verify.NotProved, "token", "e")}}
	want := []verify.Group{{Finding: answer, More: 1}, {Finding: r.Details[0], More: 1}, {Finding: r.Details[5]}}
	got := r.Grouped(answer)
	must.Hold(t, slices.Equal(got, want), "%+v\nwant %+v", got, want)
	proved := of(verify.Order, verify.Proved, "", "")
	got = r.Grouped(proved)
	must.Hold(t, slices.Equal(got, []verify.Group{{Finding: proved}}), "%+v", got)
}

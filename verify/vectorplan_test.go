package verify_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/elliptic"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// trustOf writes the trust file of a vector. It sorts the keys, because they come from a map.
func trustOf(t *testing.T, o verify.Options) []byte {
	t.Helper()
	if o.Trust == nil {
		return nil
	}
	sorted := *o.Trust
	sorted.Keys = slices.SortedFunc(slices.Values(sorted.Keys), func(a, b trust.Key) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.KeyID.String(), b.KeyID.String()))
	})
	return must.Get(sorted.Marshal())(t)
}

func givenRecord(t *testing.T, name string, r *evidence.Record, o verify.Options) given {
	t.Helper()
	file, err := r.Marshal()
	must.Need(t, err == nil, "%s: %v", name, err)
	return given{name, file, trustOf(t, o), o, nil}
}

func givenBundle(t *testing.T, name string, b *evidence.Bundle, o verify.Options) given {
	t.Helper()
	file, err := b.Marshal()
	must.Need(t, err == nil, "%s: %v", name, err)
	return given{name, file, trustOf(t, o), o, nil}
}

func (s *story) given(name string, records ...*evidence.Record) given {
	s.t.Helper()
	if records == nil {
		records = s.records
	}
	return givenBundle(s.t, name, s.house.Bundle(s.t, records...), s.house.Options(s.t))
}

func strangersStory(t *testing.T) *story { return &story{t: t, house: jurattest.NewForStrangers(t)} }

// notInAFile are changes that no file can hold: to a payload without a new signature, and to options of tests.
var notInAFile = []string{"the mock authority", "a claim after the proved time", "a claim within the tolerance"}

func recordVectors(t *testing.T) []given {
	var list []given
	add := func(name string, change func(r *evidence.Record, o *verify.Options), p evidence.Payload, apart ...string) {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), p, apart...)
		if change != nil {
			change(r, &o)
		}
		list = append(list, givenRecord(t, slug("record", name), r, o))
	}
	for _, tt := range recordBreaks() {
		if !slices.Contains(notInAFile, tt.name) {
			add(tt.name, tt.change, output("a"))
		}
	}
	late := output("a")
	late.Timestamp = "2026-01-01T00:05:00Z"
	add("a claim within the tolerance", nil, late)
	ahead, found := committedVector(t, "record-a-claim-after-the-proved-time")
	must.Hold(t, found, "the vector of a claim after the proved time is missing, and no log seals such a record any more: restore its file")
	list = append(list, ahead)
	add("a step that does not say its model", nil, step("a", "c1", 1, "Plan."))
	for _, clock := range []trust.Clock{trust.OperatorClock, trust.Independent} {
		add("a key that was revoked later by a clock "+string(clock), func(_ *evidence.Record, o *verify.Options) {
			o.Trust.Keys[0].Revoked, o.Trust.Authorities[0].Clock = jurattest.Start.Add(time.Second), clock
		}, output("a"))
	}
	add("a key that was revoked before", func(_ *evidence.Record, o *verify.Options) {
		o.Trust.Keys[0].Revoked, o.Trust.Authorities[0].Clock = jurattest.Start, trust.Independent
	}, output("a"))
	for _, c := range noteChanges() {
		add(c.name, func(r *evidence.Record, _ *verify.Options) { r.Log.Checkpoint = c.change(r.Log.Checkpoint) }, output("a"))
		add(c.name+", of a log nobody knows", func(r *evidence.Record, o *verify.Options) {
			r.Log.Checkpoint, o.Trust.Logs = c.change(r.Log.Checkpoint), nil
		}, output("a"))
	}
	add("sealed apart and disclosed", nil, output("a"), "/prompt", "/response")
	add("sealed apart and withheld", func(r *evidence.Record, _ *verify.Options) { r.Disclosures = nil }, output("a"), "/prompt", "/response")
	add("sealed apart and wrongly disclosed", func(r *evidence.Record, _ *verify.Options) {
		r.Disclosures[1].Value = jsontext.Value(`"The A7."`)
	}, output("a"), "/prompt", "/response")
	for _, key := range []string{"es256", "ed25519", "rs256", "mldsa65"} {
		list = append(list, algorithmVectors(t, key)...)
	}
	return append(list, secondSignatureVectors(t)...)
}

type noteChange struct {
	name   string
	change func(note string) string
}

// noteChanges are changes of a signed note.
func noteChanges() []noteChange {
	line := func(note string) string { return note[strings.Index(note, "\n\n")+2:] }
	forged := func(line string) string {
		i := len(line) - 20
		other := "A"
		if line[i] == 'A' {
			other = "B"
		}
		return line[:i] + other + line[i+1:]
	}
	return []noteChange{
		{"a note without signatures", func(note string) string { return note[:strings.Index(note, "\n\n")+2] }},
		{"a note that is text", func(string) string { return "a checkpoint" }},
		{"a note with a short signature", func(note string) string { return note + "— x AAAA\n" }},
		{"a note with a stranger's signature beside", func(note string) string { return note + "— x AAAAAAAA\n" }},
		{"a note with a stranger's loose signature", func(note string) string { return note + "— x AAAAAAAAAB==\n" }},
		{"a note signed twice, loosely the second time", func(note string) string { return note + looseBase64(line(note)) }},
		{"a note signed twice, the second time without padding", func(note string) string {
			return note + strings.TrimRight(line(note), "=\n") + "\n"
		}},
		{"a note signed twice, with a space behind", func(note string) string { return note + strings.TrimSuffix(line(note), "\n") + " \n" }},
		{"a note signed twice, with the line end of Windows", func(note string) string { return note + strings.TrimSuffix(line(note), "\n") + "\r\n" }},
		{"a note signed twice", func(note string) string { return note + line(note) }},
		{"a note signed twice, falsely the second time", func(note string) string { return note + forged(line(note)) }},
		{"a note signed twice, falsely the first time", func(note string) string {
			return strings.TrimSuffix(note, line(note)) + forged(line(note)) + line(note)
		}},
		{"a note with a control character", func(note string) string { return strings.Replace(note, "\n1\n", "\n1\r\n", 1) }},
	}
}

func proveOne(t *testing.T, h *jurattest.House, r *evidence.Record) *evidence.Record {
	t.Helper()
	r = must.Get(h.Ledger.ProveOne(t.Context(), r))(t)
	return r
}

// publishedKey is one of the worthless keys that package evidence publishes, as the owner's of agent a.
func publishedKey(t *testing.T, name string) (evidence.Signer, trust.Key) {
	t.Helper()
	text := read(t, filepath.Join("..", "evidence", "testdata", "keys", "worthless-test-key-"+name+".pem"))
	block, _ := pem.Decode([]byte(text))
	private := must.Get(evidence.ParsePrivateKey(block.Bytes))(t)
	signer := must.Get(evidence.NewSigner(private, nil))(t)
	public := must.Get(evidence.MarshalPublicKey(private.Public()))(t)
	info := signer.Info()
	return signer, trust.Key{Name: "a", Role: evidence.RoleAgent, Algorithm: info.Algorithm, KeyID: info.KeyID, PublicKey: public, Custody: trust.ByOwner}
}

// algorithmVectors are valid and invalid signatures of an algorithm.
func algorithmVectors(t *testing.T, name string) []given {
	t.Helper()
	var list []given
	add := func(what string, change func(signature []byte) []byte) {
		h := jurattest.NewForStrangers(t)
		signer, key := publishedKey(t, name)
		r := sealBy(t, h, signer)
		o := h.Options(t)
		o.Trust.Keys = []trust.Key{key}
		r.Signatures[0] = change(bytes.Clone(r.Signatures[0]))
		list = append(list, givenRecord(t, slug("signature", name, what), r, o))
	}
	add("valid", func(s []byte) []byte { return s })
	add("changed", func(s []byte) []byte { s[len(s)-1] ^= 1; return s })
	add("cut", func(s []byte) []byte { return s[:len(s)-1] })
	if name == "es256" {
		add("high s", highS)
		add("long length", func(s []byte) []byte { return slices.Insert(s, 1, 0x81) })
	}
	return list
}

// secondSignatureVectors are about a key that signs only together with another.
func secondSignatureVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	add := func(name string, from time.Time, timed, both bool) {
		h := jurattest.NewForStrangers(t)
		first, key := publishedKey(t, "es256")
		second, secondKey := publishedKey(t, "ed25519")
		key.With, key.WithFrom = []evidence.KeyID{secondKey.KeyID}, from
		signers := []evidence.Signer{first}
		if both {
			signers = append(signers, second)
		}
		r := sealBy(t, h, signers...)
		if !timed {
			r.Timestamps = nil
		}
		o := h.Options(t)
		o.Trust.Keys = []trust.Key{key, secondKey}
		list = append(list, givenRecord(t, slug("second signature", name), r, o))
	}
	add("there", time.Time{}, true, true)
	add("missing", time.Time{}, true, false)
	add("missing before it had to be there", jurattest.Start.Add(time.Second), true, false)
	add("missing from the very moment", jurattest.Start, true, false)
	add("missing, and no proved time", jurattest.Start.Add(time.Second), false, false)
	return list
}

// tokenVectors are about the authorities that stamp.
func tokenVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	add := func(name string, change func(r *evidence.Record, o *verify.Options)) {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
		change(r, &o)
		list = append(list, givenRecord(t, slug("token", name), r, o))
	}
	later := jurattest.Authority(t, "another", jurattest.Start.Add(time.Hour))
	stamp := func(a *timestamp.Authority, r *evidence.Record, certificate bool) evidence.Timestamp {
		token := must.Get(a.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: certificate}))(t)
		return evidence.Timestamp{Kind: evidence.RFC3161, Token: token}
	}
	root := later.Certificates()[1]
	add("under the policy strict, of an independent authority", func(r *evidence.Record, o *verify.Options) {
		o.Trust = changedTrust(t, o.Trust, func(file *trust.Trust) { file.Authorities[0].Clock = trust.Independent })
		o.Policy = verify.Strict
	})
	add("under the policy strict, of the operator's authority", func(r *evidence.Record, o *verify.Options) { o.Policy = verify.Strict })
	add("of a second authority that is not trusted", func(r *evidence.Record, _ *verify.Options) {
		r.Timestamps = append(r.Timestamps, stamp(later, r, true))
	})
	add("of a second authority alone", func(r *evidence.Record, o *verify.Options) {
		r.Timestamps, o.Trust = []evidence.Timestamp{stamp(later, r, true)}, withAuthority(o.Trust, root)
	})
	add("of two authorities, the earlier counts", func(r *evidence.Record, o *verify.Options) {
		r.Timestamps, o.Trust = append([]evidence.Timestamp{stamp(later, r, true)}, r.Timestamps...), withAuthority(o.Trust, root)
	})
	add("without its certificate", func(r *evidence.Record, _ *verify.Options) {
		r.Timestamps = []evidence.Timestamp{stamp(jurattest.Authority(t, "", jurattest.Start), r, false)}
	})
	add("of another record", func(r *evidence.Record, _ *verify.Options) {
		other := *r
		other.Signatures = [][]byte{append(bytes.Clone(r.Signatures[0]), 0)}
		r.Timestamps = []evidence.Timestamp{stamp(jurattest.Authority(t, "", jurattest.Start), &other, true)}
	})
	add("of another record beside the right one", func(r *evidence.Record, _ *verify.Options) {
		other := *r
		other.Signatures = [][]byte{append(bytes.Clone(r.Signatures[0]), 0)}
		r.Timestamps = append(r.Timestamps, stamp(jurattest.Authority(t, "", jurattest.Start), &other, true))
	})
	add("with a changed signature", func(r *evidence.Record, _ *verify.Options) {
		token := r.Timestamps[0].Token
		token[len(token)-1] ^= 1
	})
	add("with a changed signature, of nobody who is trusted", func(r *evidence.Record, o *verify.Options) {
		token := r.Timestamps[0].Token
		token[len(token)-1] ^= 1
		o.Trust.Authorities = nil
	})
	add("with another policy and a changed signature", func(r *evidence.Record, o *verify.Options) {
		token := r.Timestamps[0].Token
		token[len(token)-1] ^= 1
		o.Trust = withPolicy(o.Trust, "1.2.3")
	})
	add("with bytes after it", func(r *evidence.Record, _ *verify.Options) {
		r.Timestamps[0].Token = append(r.Timestamps[0].Token, 0)
	})
	embedding := func(change func(certificates []*derNode) []*derNode) func(r *evidence.Record, o *verify.Options) {
		return func(r *evidence.Record, _ *verify.Options) {
			token := parseDERToken(t, r.Timestamps[0].Token)
			embedded := token.Data.At(3)
			embedded.Members = change(embedded.Members)
			r.Timestamps[0].Token = token.Whole.Bytes()
		}
	}
	damaged := func(certificate *derNode) *derNode {
		encoding := certificate.Bytes()
		encoding[len(encoding)-1] ^= 1 // of its signature
		return must.Get(parseDER(encoding))(t)
	}
	unreadable := &derNode{Tag: 0x30, Members: []*derNode{{Tag: 0x04, Content: []byte("no certificate")}}}
	add("with its certificate twice", embedding(func(c []*derNode) []*derNode { return append(c, c[0]) }))
	add("with its certificate twice, the first time damaged", embedding(func(c []*derNode) []*derNode { return append([]*derNode{damaged(c[0])}, c...) }))
	add("with its certificate twice, the second time damaged", embedding(func(c []*derNode) []*derNode { return append(c, damaged(c[0])) }))
	add("with its certificate damaged", embedding(func(c []*derNode) []*derNode { return []*derNode{damaged(c[0])} }))
	add("with something that is no certificate", embedding(func([]*derNode) []*derNode { return []*derNode{unreadable} }))
	add("with its certificate the sixteenth", embedding(func(c []*derNode) []*derNode {
		return append(slices.Repeat([]*derNode{unreadable}, 15), c...)
	}))
	add("with its certificate the seventeenth", embedding(func(c []*derNode) []*derNode {
		return append(slices.Repeat([]*derNode{unreadable}, 16), c...)
	}))
	mock := timestamp.NewMock()
	add("of the mock authority", func(r *evidence.Record, o *verify.Options) {
		r.Timestamps, o.Trust = []evidence.Timestamp{stamp(mock, r, true)}, withAuthority(o.Trust, mock.Certificates()[1])
	})
	add("from the future", func(_ *evidence.Record, o *verify.Options) { o.At = jurattest.Start.Add(-6 * time.Minute) })
	add("from a future that clocks allow", func(_ *evidence.Record, o *verify.Options) { o.At = jurattest.Start.Add(-4 * time.Minute) })
	add("of an authority whose root has another key identifier", func(r *evidence.Record, o *verify.Options) {
		other := bytes.Replace(root.Raw, root.SubjectKeyId, bytes.Repeat([]byte{1}, len(root.SubjectKeyId)), 1)
		r.Timestamps = []evidence.Timestamp{stamp(later, r, true)}
		o.Trust = changedTrust(t, withAuthority(o.Trust, root), func(file *trust.Trust) { file.Authorities[len(file.Authorities)-1].Certificate = other })
	})
	add("of an authority whose root has more in it than is looked at", func(r *evidence.Record, o *verify.Options) {
		der := must.Get(parseDER(root.Raw))(t)
		key := der.At(0, 6, 0)
		key.Members = append(key.Members, key.Members[1])
		r.Timestamps = []evidence.Timestamp{stamp(later, r, true)}
		o.Trust = changedTrust(t, withAuthority(o.Trust, root), func(file *trust.Trust) { file.Authorities[len(file.Authorities)-1].Certificate = der.Bytes() })
	})
	return list
}

// fileVectors are damaged files, and files that are something else.
func fileVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
	record := givenRecord(t, "", r, o)
	s := strangersStory(t)
	parallel(s)
	chain := s.given("")
	trial := forgerOfCommitted(t, "final-judge").given("")
	add := func(name string, of given, change func(text string) string) {
		text := change(string(of.file))
		must.Need(t, text != string(of.file), "%s: the change does not apply to the file", name)
		list = append(list, given{slug("file", name), []byte(text), of.trust, of.o, nil})
	}
	replace := func(old, new string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, new, 1) }
	}
	add("that is something else", record, func(string) string { return `{"hello":"world"}` })
	add("that is empty", record, func(string) string { return "" })
	add("record without a line feed", record, func(text string) string { return strings.TrimSuffix(text, "\n") })
	add("record with white space", record, replace(`,"payload":`, `, "payload":`))
	add("record with an unknown member", record, replace(`{"digest":`, `{"a":1,"digest":`))
	add("record with a member twice", record, replace(`{"digest":`, `{"digest":"","digest":`))
	add("record with another digest", record, replace(`"digest":"sha256:`, `"digest":"sha256:0000`))
	add("record with a payload changed", record, replace(`The A9.`, `The A7.`))
	add("record with an empty member", record, replace(`"signatures":`, `"certificates":[],"signatures":`))
	add("record with null timestamps", record, func(text string) string {
		return text[:strings.Index(text, `"timestamps":`)] + "\"timestamps\":null}\n"
	})
	add("record with loose base64", record, func(text string) string {
		i := strings.LastIndex(text, `"}]}`)
		return text[:i] + "\n" + text[i:]
	})
	add("record cut off", record, func(text string) string { return text[:len(text)/2] })
	add("record that speaks about bundles", record, func(text string) string {
		return strings.Replace(text, "The A9.", "Of jurat/bundle/v1.", 1)
	})
	add("chain cut off", chain, func(text string) string { return text[:len(text)/2] })
	add("chain with records in another order", chain, func(text string) string {
		return strings.Replace(strings.Replace(text, `"index":0`, `"index":9`, 1), `"index":1`, `"index":0`, 1)
	})
	add("chain with a checkpoint inside", chain, replace(`"index":0`, `"checkpoint":"x","index":0`))
	add("trial cut off", trial, func(text string) string { return text[:len(text)/2] })
	add("trial with a payload changed", trial, replace(`Kassel`, `Berlin`))
	add("record indented", record, func(text string) string { return indented(t, text) })
	add("record indented with a mark and CRLF", record, func(text string) string {
		return "\ufeff" + strings.ReplaceAll(indented(t, text), "\n", "\r\n")
	})
	add("record with two line feeds", record, func(text string) string { return text + "\n" })
	add("record with members in another order", record, func(text string) string {
		digest := text[1:strings.Index(text, `"payload":`)]
		return "{" + text[1+len(digest):len(text)-2] + "," + strings.TrimSuffix(digest, ",") + "}\n"
	})
	add("record with escapes and numbers spelled otherwise", record, func(text string) string {
		return strings.Replace(strings.Replace(text, "The A9.", `\u0054he A9.`, 1), `"temperature":0.2`, `"temperature":2.0E-1`, 1)
	})
	add("record with text behind it", record, func(text string) string { return text + "{}" })
	add("record indented with a member twice", record, func(text string) string {
		return strings.Replace(indented(t, text), `"digest":`, `"digest": "", "digest":`, 1)
	})
	add("record indented with a payload changed", record, func(text string) string { return strings.Replace(indented(t, text), `The A9.`, `The A7.`, 1) })
	add("chain indented with CRLF", chain, func(text string) string { return strings.ReplaceAll(indented(t, text), "\n", "\r\n") })
	add("chain without a line feed", chain, func(text string) string { return strings.TrimSuffix(text, "\n") })
	add("chain with the records first", chain, func(text string) string {
		i := strings.Index(text, `"records":`)
		return "{" + text[i:len(text)-2] + "," + strings.TrimSuffix(text[1:i], ",") + "}\n"
	})
	add("chain with a member behind the records", chain, func(text string) string { return text[:len(text)-2] + `,"more":1}` + "\n" })
	list = append(list, given{"file-bundle-without-records", []byte(`{"format":"jurat/bundle/v1","records":[]}` + "\n"), chain.trust, chain.o, nil})
	return append(list, payloadVectors(t, record)...)
}

// indented returns a file as people format it.
func indented(t *testing.T, text string) string {
	t.Helper()
	value := jsontext.Value(text)
	must.Do(t, value.Indent(jsontext.WithIndent("  ")))
	return string(value) + "\n"
}

// payloadVectors are records whose payload breaks a rule of its form, with a matching digest.
func payloadVectors(t *testing.T, record given) []given {
	t.Helper()
	var list []given
	add := func(name, old, new string) {
		r := must.Get(evidence.Open(record.file))(t)
		payload := string(r.Canonical())
		changed := strings.Replace(payload, old, new, 1)
		must.Need(t, changed != payload, "%s: the change does not apply to the payload", name)
		text := strings.Replace(string(record.file), payload, changed, 1)
		text = strings.Replace(text, r.Digest.String(), evidence.DigestOf([]byte(changed)).String(), 1)
		list = append(list, given{slug("payload", name), []byte(text), record.trust, record.o, nil})
	}
	add("valid but other than signed", `"The A9."`, `"The A7."`)
	add("without a required member", `"model":"m",`, ``)
	add("with an unknown member", `{"action_type"`, `{"a":1,"action_type"`)
	add("with a member of another action type", `"prompt"`, `"original_response_id":"x","prompt"`)
	add("with another schema", `jurat/evidence/v1`, `jurat/evidence/v2`)
	add("with an unknown action type", `"model_output"`, `"dance"`)
	add("with an empty name", `"agent_id":"a"`, `"agent_id":""`)
	add("with a name of white space", `"agent_id":"a"`, "\"agent_id\":\"\u2003\u00a0\"")
	add("with a name that turns the line", `"agent_id":"a"`, "\"agent_id\":\"a\u202e\"")
	add("with a name that has a control character", `"agent_id":"a"`, "\"agent_id\":\"a\u0085\"")
	add("with a name too long", `"agent_id":"a"`, `"agent_id":"`+strings.Repeat("é", 101)+`"`)
	add("with a member null", `"response":"The A9."`, `"response":null`)
	add("with a response that is a number", `"response":"The A9."`, `"response":9`)
	add("with a time that is no day", `2026-01-01T00`, `2026-02-30T00`)
	add("with a time that is not UTC", `"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00+00:00"`)
	add("with a leap second", `"2026-01-01T00:00:00Z"`, `"2025-12-31T23:59:60Z"`)
	add("with a time in too many digits", `"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.0000000000Z"`)
	add("with a position of zero", `"model":"m"`, `"chain_position":0,"model":"m"`)
	add("with a number that is none", `0.2`, `9007199254740993`)
	add("with a number in another form", `0.2`, `0.20`)
	add("with negative zero", `0.2`, `-0`)
	add("with a lone surrogate", `"The A9."`, `"\ud83d"`)
	add("with an agent in a trial's chain", `"model":"m"`, `"chain_id":"trial-1","model":"m"`)
	add("with an agent in the operator's chain", `"model":"m"`, `"chain_id":"operator-keys","model":"m"`)
	add("with a digest of zeros", `"prompt"`, `"previous_record":"sha256:`+strings.Repeat("0", 64)+`","prompt"`)
	add("with an empty saw", `"schema":`, `"saw":[],"schema":`)
	add("with something sealed apart that is none", `"signers":`, `"sealed_apart":["/response"],"signers":`)
	add("with something sealed apart that cannot be", `"signers":`, `"sealed_apart":["/model"],"signers":`)
	add("with tools that are text", `"timestamp":"2026-01-01T00:00:00Z"`, `"timestamp":"2026-01-01T00:00:00Z","tools_used":"x"`)
	return list
}

func chainVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, tt := range honestChains() {
		s := strangersStory(t)
		tt.tell(s)
		list = append(list, s.given(slug("chain", tt.name)))
	}
	for _, tt := range brokenChains() {
		s := strangersStory(t)
		tt.tell(s)
		list = append(list, s.given(slug("chain", tt.name)))
	}
	circle := strangersStory(t)
	for _, side := range [][3]string{{"c1", "x", "y"}, {"c2", "y", "x"}} {
		p := step("a", side[0], 1, "a")
		p.RequestID, p.ParentRequestID = side[1], side[2]
		circle.add(p)
	}
	list = append(list, circle.given("chain-parents-in-a-circle"))
	cut := strangersStory(t)
	_, toolA, toolB, execution := parallel(cut)
	list = append(list, cut.given("chain-without-its-beginning", toolA, toolB, execution))
	whole := cut.given("chain-of-a-log-that-nobody-knows")
	whole.o.Trust.Logs = nil
	whole.trust = trustOf(t, whole.o)
	list = append(list, causalityVector(t))
	late := cut.house.Bundle(t, cut.records...)
	late.Records[0].Log.Index, late.Records[1].Log.Index = late.Records[1].Log.Index, late.Records[0].Log.Index
	late.Records[0], late.Records[1] = late.Records[1], late.Records[0]
	return append(list, whole, givenBundle(t, "chain-that-names-what-came-later", late, cut.house.Options(t)))
}

// causalityVector is a record that names a later one, in a log that shows it.
func causalityVector(t *testing.T) given {
	t.Helper()
	later := output("b")
	later.RecordID = "019b76da-a826-72cf-a88c-da576ae5e204"
	earlier := output("a")
	earlier.Saw = []evidence.Digest{strangersStory(t).add(later).Digest} // the same in every house
	s := strangersStory(t)
	s.add(earlier)
	s.add(later)
	return s.given("chain-that-saw-what-was-sealed-later")
}

func reviewVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, tt := range honestReviews() {
		s := strangersStory(t)
		tt.tell(s)
		list = append(list, s.given(slug("review", tt.name)))
	}
	for _, tt := range brokenReviews() {
		s := strangersStory(t)
		a := s.add(answer())
		p := reviewOf(a, evidence.Approved, "")
		tt.change(&p, a)
		s.add(p)
		list = append(list, s.given(slug("review", tt.name)))
	}
	for _, tt := range brokenDeliveries() {
		s := strangersStory(t)
		tt.tell(s, s.add(answer()))
		list = append(list, s.given(slug("delivery", tt.name)))
	}
	s := strangersStory(t)
	a := s.add(answer(), "/response")
	b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7), "/modified_response")
	s.add(deliveryOf(routeA7, a, b), "/response")
	bundle := s.house.Bundle(t, s.records...)
	list = append(list, givenBundle(t, "delivery-sealed-apart-and-disclosed", bundle, s.house.Options(t)))
	for _, r := range bundle.Records {
		r.Disclosures = nil
	}
	list = append(list, givenBundle(t, "delivery-sealed-apart-and-withheld", bundle, s.house.Options(t)),
		s.given("review-whose-original-is-not-shown", b), s.given("delivery-of-what-is-not-shown", s.records[2]))
	untrusted := s.given("review-by-keys-that-nobody-knows")
	untrusted.o.Trust.Keys = nil
	untrusted.trust = trustOf(t, untrusted.o)
	review := proveOne(t, s.house, b)
	return append(list, untrusted, givenRecord(t, "review-alone", review, s.house.Options(t)))
}

// togetherVectors are files that are given together.
func togetherVectors(t *testing.T) []given {
	t.Helper()
	joint := func(name string, files []*evidence.Bundle, o verify.Options) given {
		g := givenBundle(t, name, files[0], o)
		for _, b := range files[1:] {
			g.with = append(g.with, givenBundle(t, name, b, o).file)
		}
		return g
	}
	s := strangersStory(t)
	a, b, d := flow(s)
	list := []given{joint("together-an-answer-its-review-and-its-delivery", s.apart(d, a, b), s.house.Options(t)),
		joint("together-without-the-review", s.apart(a, d), s.house.Options(t))}
	c := strangersStory(t)
	planner, tool, _, execution := parallel(c)
	list = append(list, joint("together-a-chain-without-its-beginning", c.apart(tool, execution), c.house.Options(t)),
		joint("together-a-chain-with-a-hole", c.apart(planner, execution), c.house.Options(t)))
	g := strangersStory(t)
	g.add(deliveryOf(routeA9, g.add(answer())))
	list = append(list, g.given("delivery-given-on"))
	one, other := strangersStory(t), strangersStory(t)
	changed := answer()
	changed.Response = quoted(routeA7)
	files := append(one.apart(one.add(answer())), other.apart(other.add(changed))...)
	return append(list, joint("together-two-histories", files, one.house.Options(t)), twinsVector(t))
}

func twinsVector(t *testing.T) given {
	t.Helper()
	c := newChanceOf(t, 1, jurattest.NewForStrangers(t))
	checkpoint, first, second := c.twins(t.Context())
	o := c.house.Options(t)
	g := givenBundle(t, "together-twins", &evidence.Bundle{Records: []*evidence.Record{first}, Checkpoint: checkpoint}, o)
	g.with = [][]byte{givenBundle(t, "", &evidence.Bundle{Records: []*evidence.Record{second}, Checkpoint: checkpoint}, o).file}
	return g
}

// committedTrial is an honest trial. Its jurors speak at the same time, so each run differs. The committed one is the
// base of the vectors. Delete its file to make it again.
func committedTrial(t *testing.T, name string) []*evidence.Record {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(vectorsDir, "trial-"+name+".json"))
	if errors.Is(err, os.ErrNotExist) && *update {
		house := jurattest.NewForStrangers(t)
		settings, jurors, judge := trialPlans()[name]()
		return house.TryBefore(t, settings, jurors, judge).Records
	}
	must.Do(t, err)
	bundle := must.Get(evidence.ParseBundle(file))(t)
	return bundle.Records
}

func forgerOfCommitted(t *testing.T, name string) *forger {
	t.Helper()
	return newForgerOf(t, jurattest.NewForStrangers(t), committedTrial(t, name))
}

func (f *forger) given(name string) given {
	f.t.Helper()
	b := f.seal()
	return givenBundle(f.t, name, b, f.house.Options(f.t))
}

// trialPlans are honest trials that come to a judgment in different ways.
func trialPlans() map[string]func() (jury.Settings, []jury.Juror, jury.Juror) {
	plan := func(method jury.Method, change func(s *jury.Settings, jurors []jury.Juror, judge *jurattest.Juror)) func() (jury.Settings, []jury.Juror, jury.Juror) {
		return func() (jury.Settings, []jury.Juror, jury.Juror) {
			settings := jurattest.Settings(method)
			jurors, _ := jurattest.Panel()
			judge := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 85)}
			if change != nil {
				change(&settings, jurors, judge)
			}
			return settings, jurors, judge
		}
	}
	blocked := &jurattest.Juror{Err: jury.ErrBlocked}
	absent := &jurattest.Juror{Err: errors.New("no connection")}
	plans := map[string]func() (jury.Settings, []jury.Juror, jury.Juror){
		"final-judge": plan(jury.FinalJudge, nil),
		"positions-apart-from-totals": plan(jury.FinalJudge, func(_ *jury.Settings, jurors []jury.Juror, judge *jurattest.Juror) {
			for _, juror := range jurors {
				juror.(*jurattest.Juror).Opinion, juror.(*jurattest.Juror).Speeches = jurattest.Opine(jury.UnsafeFail, 80), nil
			}
			judge.Opinion = jurattest.Opine(jury.UnsafeFail, 60)
		}),
		"no-quorum-at-once": plan(jury.FinalJudge, func(_ *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			jurors[0], jurors[1] = absent, absent
		}),
		"no-quorum-in-the-end": plan(jury.FinalJudge, func(_ *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			jurors[0], jurors[1] = &jurattest.Juror{Err: context.DeadlineExceeded}, absent
		}),
		"no-quorum-with-a-stand-in": plan(jury.FinalJudge, func(_ *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			jurors[0], jurors[1] = blocked, absent
		}),
		"majority-vote":    plan(jury.MajorityVote, nil),
		"weighted-average": plan(jury.WeightedAverage, nil),
		"without-discussion": plan(jury.WeightedAverage, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.Collaborative = false
			jurors[0].(*jurattest.Juror).Opinion.Confidence = 0.1
		}),
		"threshold-met-at-once": plan(jury.MajorityVote, func(s *jury.Settings, _ []jury.Juror, _ *jurattest.Juror) { s.Threshold = 0.67 }),
		"tie": plan(jury.MajorityVote, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 1
			jurors[1].(*jurattest.Juror).Speeches = nil
			jurors[2].(*jurattest.Juror).Opinion = jurattest.Opine(jury.NeedsReview, 55)
		}),
		"blocked-juror": plan(jury.MajorityVote, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 1
			jurors[0] = blocked
		}),
		"absent-juror": plan(jury.FinalJudge, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 1
			jurors[0] = absent
		}),
		"judge-blocked": plan(jury.FinalJudge, func(s *jury.Settings, _ []jury.Juror, judge *jurattest.Juror) {
			s.Threshold = 0.5
			judge.Err = jury.ErrBlocked
		}),
		"inconclusive": plan(jury.FinalJudge, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 1
			jurors[0], jurors[1] = blocked, absent
		}),
		"vetoed": plan(jury.FinalJudge, func(s *jury.Settings, _ []jury.Juror, _ *jurattest.Juror) {
			s.Rubric[0].Veto, s.Rubric[3].Veto = 18, 50
			s.Threshold = 0.5
		}),
		"calibrated": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			s.Weights = map[string]int{"juror-a": 10, "juror-b": 30, "juror-c": 10}
			s.Shortening = &jury.Shortening{Rule: "middle-out", Limit: 100000}
			s.CostCeiling = 1000000
		}),
		"calibrated-tie": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			s.Weights = map[string]int{"juror-a": 10, "juror-b": 20, "juror-c": 10}
		}),
		"calibrated-without-weight": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			s.Weights = map[string]int{"juror-a": 0, "juror-b": 0, "juror-c": 0}
		}),
		"ceiling": plan(jury.FinalJudge, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			jurors[1] = &jurattest.Juror{Err: jury.ErrCeiling}
		}),
		"nobody-votes": plan(jury.WeightedAverage, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			jurors[0], jurors[1], jurors[2] = absent, absent, absent
		}),
	}
	maps.Copy(plans, thirdPlans())
	return plans
}

func trialVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	plans := trialPlans()
	names := make([]string, 0, len(plans))
	for name := range plans {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, forgerOfCommitted(t, name).given("trial-"+name))
	}
	for _, tt := range append(forgeries(), furtherForgeries()...) {
		f := forgerOfCommitted(t, "final-judge")
		tt.forge(f)
		list = append(list, f.given(slug("forged", tt.name)))
	}
	return slices.Concat(list, partialTrials(t), thirdVectors(t))
}

// furtherForgeries break exactly one rule each.
func furtherForgeries() []forgery {
	return []forgery{
		{name: "a judgment that follows another act", forge: func(f *forger) {
			p, _ := f.find(evidence.FinalJudgment)
			p.PreviousRecord = f.was[1]
		}},
		{name: "another position", forge: func(f *forger) {
			p, _ := f.find(evidence.ConsensusCheck)
			p.ChainPosition++
		}},
		{name: "settings that cannot be", forge: func(f *forger) {
			p, _ := f.find(evidence.PhaseOpening)
			p.Response = jsontext.Value(strings.Replace(string(p.Response), `"maxRounds":2`, `"maxRounds":21`, 1))
		}},
		{name: "other rules", forge: func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) { b["rules"] = "jurat/trial/v9" })
		}},
		{name: "other rules from a round on", forge: func(f *forger) {
			for i := range f.acts {
				if p := &f.acts[i]; p.ActionType == evidence.PhaseOpening && strings.Contains(string(p.Response), `"phase":"discussion"`) {
					p.Response = jsontext.Value(strings.Replace(string(p.Response), jury.TrialRules, "jurat/trial/v9", 1))
				}
			}
		}},
		{name: "an opening of another round", forge: func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) { b["roundNumber"] = 1 })
		}},
		{name: "an opening of another phase", forge: func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) { b["phase"] = "discussion" })
		}},
		{name: "an opening that asks fewer", forge: func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) { b["requests"] = b["requests"].([]any)[:2] })
		}},
		{name: "a position that is none", forge: func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["position"] = "maybe" })
		}},
		{name: "a role that is not the seat's", forge: func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["roleName"] = "Ninth" })
		}},
		{name: "an empty role", forge: func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["roleFocus"] = "" })
		}},
		{name: "a stand-in that nobody needs", forge: func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["fallback"] = true })
		}},
		{name: "a change of position that was none", forge: func(f *forger) {
			f.edit(evidence.Statement, func(b map[string]any) { b["positionChanged"] = b["positionChanged"] == false })
		}},
		{name: "a statement without words", forge: func(f *forger) {
			f.edit(evidence.Statement, func(b map[string]any) { b["statement"] = "\u2003" })
		}},
		{name: "a statement out of order", forge: func(f *forger) {
			f.edit(evidence.Statement, func(b map[string]any) { b["statementOrder"] = 2 })
		}},
		{name: "a score that is no whole number", forge: func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["score"] = 84.5 })
		}},
		{name: "a score that no integer holds", forge: func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["score"] = 1e19 })
		}},
		{name: "a closing in another's name", forge: func(f *forger) {
			f.edit(evidence.TrialClosing, func(b map[string]any) { delete(b, "acts") })
		}},
		{name: "a revision of the model", forge: func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			p.Model = "scripted@17"
		}},
		{name: "another model", forge: func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			p.Model = "scripted2"
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["degraded"] = true })
		}},
		{name: "another model that degrades nothing", forge: func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			p.Model = "scripted2"
		}},
		{name: "a model that was not reported", forge: func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			p.Model = jury.Unreported
		}},
		{name: "other parameters", forge: func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Parameters = jsontext.Value(`{"temperature":2}`)
		}},
		{name: "an answer without a seat", forge: func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			p.AgentID = "juror-x"
		}},
		{name: "a reason that is null", forge: func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["rationale"] = nil })
		}},
	}
}

// partialTrials are files in which parts of an honest trial are missing or others are added.
func partialTrials(t *testing.T) []given {
	t.Helper()
	var list []given
	add := func(name string, change func(f *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle) {
		f := forgerOfCommitted(t, "majority-vote")
		b, o := f.seal(), f.house.Options(t)
		b = change(f, b, &o)
		list = append(list, givenBundle(t, slug("trial", name), b, o))
	}
	add("without its submission", func(_ *forger, b *evidence.Bundle, _ *verify.Options) *evidence.Bundle {
		b.Records = b.Records[1:]
		return b
	})
	add("without an act in the middle", func(_ *forger, b *evidence.Bundle, _ *verify.Options) *evidence.Bundle {
		b.Records = slices.Delete(b.Records, 5, 6)
		return b
	})
	add("by keys that nobody knows", func(_ *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle {
		o.Trust.Keys = nil
		return b
	})
	add("with another actor", func(_ *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle {
		key := o.Trust.Key(b.Records[2].Payload.Signers[0].KeyID)
		key.Name = "somebody else"
		return b
	})
	add("without tokens and places", func(_ *forger, b *evidence.Bundle, _ *verify.Options) *evidence.Bundle {
		b.Records[3].Timestamps, b.Records[4].Log = nil, nil
		return b
	})
	add("whose closing has no place", func(_ *forger, b *evidence.Bundle, _ *verify.Options) *evidence.Bundle {
		b.Records[len(b.Records)-1].Log = nil
		return b
	})
	add("with another record's signature", func(_ *forger, b *evidence.Bundle, _ *verify.Options) *evidence.Bundle {
		b.Records[3].Signatures = b.Records[4].Signatures
		return b
	})
	add("with a stray record", func(f *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle {
		stray := f.house.Seal(t, output("a"))
		*o = f.house.Options(t)
		return f.house.Bundle(t, append(b.Records, stray)...)
	})
	add("with a decision", func(f *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle {
		judgment := b.Records[len(b.Records)-2]
		p := reviewOf(judgment, evidence.Rejected, "")
		p.ChainID, p.Case, p.ChainPosition = judgment.Payload.ChainID, judgment.Payload.Case, judgment.Payload.ChainPosition+1
		p.Timestamp = "2026-01-01T00:00:09Z"
		decision := f.house.Seal(t, p)
		*o = f.house.Options(t)
		return f.house.Bundle(t, append(b.Records, decision)...)
	})
	add("with a decision that names no chain", func(f *forger, b *evidence.Bundle, o *verify.Options) *evidence.Bundle {
		decision := f.house.Seal(t, reviewOf(b.Records[len(b.Records)-2], evidence.Rejected, ""))
		*o = f.house.Options(t)
		return f.house.Bundle(t, append(b.Records, decision)...)
	})
	f := forgerOfCommitted(t, "majority-vote")
	b := f.seal()
	return append(list, givenRecord(t, "trial-one-act", proveOne(t, f.house, b.Records[len(b.Records)-2]), f.house.Options(t)),
		givenRecord(t, "trial-one-answer", proveOne(t, f.house, b.Records[2]), f.house.Options(t)))
}

// refusedTrust are trust files that are refused as a whole.
func refusedTrust(t *testing.T) []given {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	h.Seal(t, output("a"))
	doc := string(trustOf(t, h.Options(t)))
	logKey := doc[strings.Index(doc, jurattest.Origin+"+"):]
	logKey = logKey[:strings.IndexByte(logKey, '"')]
	logHash := logKey[len(jurattest.Origin):][:len("+12345678")]
	keyOf := func(y byte) string {
		return must.Get(note.NewEd25519VerifierKey(jurattest.Origin, append([]byte{y}, make([]byte, 31)...)))(t)
	}
	var list []given
	for _, change := range append(refusedWitnesses(t), [][3]string{
		{"with a log key under which anything verifies", logKey, keyOf(1)},
		{"with a log key that is no point", logKey, keyOf(2)},
		{"of another format", trust.Format, "jurat/trust/v9"},
		{"with an unknown member", `"format":`, `"formats": 1, "format":`},
		{"with a member twice", `"format":`, `"format": "x", "format":`},
		{"with an unknown role", `"role": "agent"`, `"role": "king"`},
		{"with an unknown custody", `"custody": "operator"`, `"custody": ""`},
		{"with an unknown clock", `"clock": "operator"`, `"clock": "sun"`},
		{"with a key without a name", `"name": "a"`, `"name": ""`},
		{"with another algorithm", `"alg": "ES256"`, `"alg": "RS256"`},
		{"with an unused bit in a public key", `A=="`, `B=="`},
		{"with a public key that is none", `"public_key": "MFk`, `"public_key": "MFl`},
		{"with a certificate that is none", `"certificate": "MII`, `"certificate": "MIJ`},
		{"with a log key that is none", "jurattest.example/log+", "jurattest.example/log-"},
		{"with a line feed behind a log key", logKey, logKey + `\n`},
		{"with a line feed in a log key", logKey, logKey[:len(logKey)-4] + `\r\n` + logKey[len(logKey)-4:]},
		{"with the hash of a log key in capitals", logHash, strings.ToUpper(logHash)},
		{"with a sign in the hash of a log key", logHash, "+" + logHash},
		{"with an end before the beginning", `"custody":`, `"not_before":"2026-02-01T00:00:00Z","not_after":"2026-01-01T00:00:00Z","custody":`},
		{"with a second key that is not there", `"custody":`, `"with":["sha256:` + strings.Repeat("1", 64) + `"],"custody":`},
		{"with a log twice", `"logs": [`, `"logs": ["jurattest.example/log+x", "jurattest.example/log+x",`},
		{"with a revocation that is none", `"clock":`, `"revocation":"ocsp","clock":`},
		{"with a policy with a leading zero", `"clock":`, `"policies":["1.02"],"clock":`},
		{"with a policy of an arc that is none", `"clock":`, `"policies":["1.40"],"clock":`},
		{"with two byte order marks", `{`, "\ufeff\ufeff{"},
		{"with a revocation of CAs alone", `"clock":`, `"revocation":"short","clock":`},
		{"with a number that is none", `"format":`, `"logs2": 9007199254740993, "format":`},
	}...) {
		changed := strings.Replace(doc, change[1], change[2], 1)
		if changed == doc {
			t.Fatalf("%s: the change does not apply to the trust file", change[0])
		}
		list = append(list, given{name: slug(change[0]), file: []byte(changed)})
	}
	lists := compactLists(t)
	for _, change := range listChanges {
		list = append(list, given{name: slug("lists with", change.name), file: []byte(strings.Replace(lists, change.old, change.new, 1))})
	}
	return list
}

// oddTrust are valid trust files in an unusual form.
func oddTrust(t *testing.T) []given {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	h.Seal(t, output("a"))
	doc := string(trustOf(t, h.Options(t)))
	var list []given
	for _, change := range [][3]string{
		{"in one line", "\n", " "},
		{"with nulls", `"custody":`, `"not_before":null,"with":null,"custody":`},
		{"without logs", `"logs": [`, `"logs": null, "cas": [`},
		{"with an offset", `"custody":`, `"not_before":"2025-01-01T02:00:00.500+02:00","custody":`},
		{"with an offset of nothing", `"custody":`, `"not_before":"2025-01-01T00:00:00.000+00:00","custody":`},
		{"with a time of ten digits", `"custody":`, `"not_before":"2025-01-01T00:00:00.1000000009Z","custody":`},
		{"with policies empty", `"clock":`, `"policies":[],"revocation":"none","clock":`},
		{"with no witnesses", `"format":`, `"witnesses":[],"quorum":0,"format":`},
		{"with a quorum in other digits", `"format":`, `"quorum":1.0e0,"witnesses":["` + threeWitnesses(t)[0].String() + `"],"format":`},
	} {
		n := 1
		if change[1] == "\n" {
			n = -1
		}
		changed := strings.Replace(doc, change[1], change[2], n)
		if change[0] == "without logs" {
			start := strings.Index(changed, `"cas": [`) + len(`"cas": [`)
			changed = changed[:start] + changed[start+strings.IndexByte(changed[start:], ']'):]
		}
		list = append(list, given{name: slug(change[0]), file: []byte(changed)})
	}
	lists := compactLists(t)
	for name, changed := range map[string]string{
		"with lists":              lists,
		"with lists in few words": strings.NewReplacer(`"granted_since": "2020-01-02T03:04:05Z",`, `"granted_since": null,`, `"BE","EE"`, ``, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.000+00:00"`, `"type": "urn:other"`, `"type": null`).Replace(lists),
	} {
		list = append(list, given{name: slug(name), file: []byte(changed)})
	}
	slices.SortStableFunc(list[len(list)-2:], func(a, b given) int { return strings.Compare(a.name, b.name) })
	return list
}

// highS returns the other valid form of an ECDSA signature.
func highS(signature []byte) []byte {
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(signature, &pair); err != nil {
		panic(err)
	}
	pair.S.Sub(elliptic.P256().Params().N, pair.S)
	high, err := asn1.Marshal(pair)
	if err != nil {
		panic(err)
	}
	return high
}

package verify_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// caseFile is the case file of an honest trial with the options that prove it.
func caseFile(t *testing.T) ([]byte, verify.Options) {
	t.Helper()
	h := jurattest.New(t)
	b := h.Bundle(t, h.Try(t, jury.FinalJudge).Records...)
	file := must.Get(b.Marshal())(t)
	o := h.Options(t)
	r := check(t, file, o)
	must.Need(t, r.Outcome == verify.Proved, "the honest file: %s: %+v", r.Outcome, r.Details)
	return file, o
}

func check(t *testing.T, file []byte, o verify.Options) *verify.Report {
	t.Helper()
	return must.Get(verify.File(file, o))(t)
}

// TestEveryByteCounts changes single bytes of a case file: each time the outcome is not "proved", and the report names
// a guarantee and a reason. The long form changes every byte, the short one every 331st.
func TestEveryByteCounts(t *testing.T) {
	file, o := caseFile(t)
	step := 331
	if os.Getenv("JURAT_TEST_LONG") != "" {
		step = 1
	}
	for i := 0; i < len(file); i += step {
		for _, change := range []byte{1, 0x20} {
			mutant := bytes.Clone(file)
			mutant[i] ^= change
			r, err := verify.File(mutant, o)
			must.Need(t, err == nil, "byte %d: File returned an error, not a report: %v", i, err)
			named := slices.ContainsFunc(r.Guarantees, func(f verify.Finding) bool {
				return f.Status != verify.Proved && f.Guarantee != verify.NonRepudiation && f.Reason != ""
			})
			if r.Outcome == verify.Proved || !named {
				t.Fatalf("byte %d (%q) changed to %q: %s", i, file[i], mutant[i], r.Outcome)
			}
		}
	}
}

func TestEveryTruncationCounts(t *testing.T) {
	file, o := caseFile(t)
	for n := len(file) - 1; n > 0; n -= 997 {
		r, err := verify.File(file[:n], o)
		must.Need(t, err != nil || r.Outcome != verify.Proved || (n == len(file)-1 && r.Mended),
			"cut to %d of %d bytes: proved", n, len(file)) // all but its line feed
	}
}

// bundleForm is a loose form of a bundle file, with which tests write files that no honest program writes.
type bundleForm struct {
	Checkpoint string           `json:"checkpoint,omitzero"`
	Format     string           `json:"format"`
	Records    []jsontext.Value `json:"records"`
}

// rewrite changes the records of a case file as text.
func rewrite(t *testing.T, file []byte, o verify.Options, change func(b *bundleForm)) *verify.Report {
	t.Helper()
	var form bundleForm
	must.Do(t, json.Unmarshal(file, &form))
	change(&form)
	doc := must.Get(json.Marshal(form))(t)
	return check(t, append(doc, '\n'), o)
}

// edit opens a case file, changes the bundle, and returns the report on the result.
func edit(t *testing.T, file []byte, o verify.Options, change func(b *evidence.Bundle)) *verify.Report {
	t.Helper()
	b := must.Get(evidence.ParseBundle(file))(t)
	change(b)
	return verify.Bundle(b, o)
}

// TestRecordsDroppedSwappedAndDoubled swaps, in the short form, only records that are close to each other, or of which one is the first.
func TestRecordsDroppedSwappedAndDoubled(t *testing.T) {
	file, o := caseFile(t)
	far, _, _ := chanceOfTest(t, 2, 1000)
	b := must.Get(evidence.ParseBundle(file))(t)
	for i := range b.Records {
		last := i == len(b.Records)-1
		r := edit(t, file, o, func(b *evidence.Bundle) { b.Records = slices.Delete(b.Records, i, i+1) })
		want := verify.Refuted
		if last { // a cut tail shows only by the missing closing
			want = verify.NotProved
		}
		got := r.Of(verify.Completeness)
		must.Hold(t, r.Outcome == want && got.Status == want, "record %d dropped: %s, %+v; want completeness %s", i, r.Outcome, got, want)
		r = rewrite(t, file, o, func(b *bundleForm) { b.Records = slices.Insert(b.Records, i, b.Records[i]) })
		got = r.Of(verify.Content)
		must.Hold(t, r.Outcome == verify.Refuted && got.Status == verify.Refuted && got.Record != "", "record %d doubled: %s, %+v", i, r.Outcome, got)
		for j := range i {
			if j > 0 && i-j > far {
				continue
			}
			r := rewrite(t, file, o, func(b *bundleForm) { b.Records[i], b.Records[j] = b.Records[j], b.Records[i] })
			must.Hold(t, r.Outcome == verify.Refuted, "records %d and %d swapped: %s", i, j, r.Outcome)
			r = edit(t, file, o, func(b *evidence.Bundle) {
				b.Records[i], b.Records[j] = b.Records[j], b.Records[i]
				b.Records[i].Log, b.Records[j].Log = b.Records[j].Log, b.Records[i].Log
			})
			got := r.Of(verify.Order)
			must.Hold(t, got.Status == verify.Refuted && got.Rule == "inclusion", "records %d and %d swapped with their places in the log: %+v", i, j, got)
		}
	}
}

func TestTailCut(t *testing.T) {
	file, o := caseFile(t)
	b := must.Get(evidence.ParseBundle(file))(t)
	for n := range b.Records {
		r := edit(t, file, o, func(b *evidence.Bundle) { b.Records = b.Records[:n] })
		must.Hold(t, r.Outcome != verify.Proved, "cut to %d records: proved", n)
	}
}

// TestPartsOfAnotherTrial puts genuine parts of another trial into a case file.
func TestPartsOfAnotherTrial(t *testing.T) {
	h := jurattest.New(t)
	file := must.Get(h.Bundle(t, h.Try(t, jury.FinalJudge).Records...).Marshal())(t)
	other := h.Bundle(t, h.Try(t, jury.FinalJudge).Records...)
	o := h.Options(t)
	tests := []struct {
		name      string
		change    func(b *evidence.Bundle)
		guarantee verify.Guarantee
		status    verify.Status
		rule      string
	}{
		{"its token", func(b *evidence.Bundle) { b.Records[5].Timestamps = other.Records[5].Timestamps }, verify.Time, verify.Refuted, "token"},
		{"its token beside the right one", func(b *evidence.Bundle) {
			b.Records[5].Timestamps = append(b.Records[5].Timestamps, other.Records[5].Timestamps...)
		}, verify.Time, verify.Refuted, "token"},
		{"no token", func(b *evidence.Bundle) { b.Records[5].Timestamps = nil }, verify.Time, verify.NotProved, "pending"},
		{"its signature", func(b *evidence.Bundle) { b.Records[5].Signatures = other.Records[5].Signatures }, verify.Content, verify.Refuted, "signature"},
		{"its place in the log", func(b *evidence.Bundle) { b.Records[5].Log.Index++; b.Records = b.Records[:6] }, verify.Order, verify.Refuted, "inclusion"},
		{"no place in the log", func(b *evidence.Bundle) { b.Records[5].Log = nil }, verify.Order, verify.NotProved, "inclusion"},
		{"no checkpoint", func(b *evidence.Bundle) { b.Checkpoint = "" }, verify.Order, verify.NotProved, "checkpoint"},
		{"its checkpoint", func(b *evidence.Bundle) { b.Checkpoint = other.Checkpoint }, verify.Order, verify.Refuted, "inclusion"},
		{"a changed checkpoint", func(b *evidence.Bundle) { b.Checkpoint = strings.Replace(b.Checkpoint, "\n1", "\n2", 1) }, verify.Order, verify.Refuted, "checkpoint"},
		{"no records", func(b *evidence.Bundle) { b.Records = nil }, verify.Content, verify.NotProved, "empty"},
	}
	for _, tt := range tests {
		r := edit(t, file, o, tt.change)
		if got := r.Of(tt.guarantee); r.Outcome == verify.Proved || got.Status != tt.status || got.Rule != tt.rule {
			t.Errorf("%s: outcome %s, %+v; want %s %s by %s", tt.name, r.Outcome, got, tt.guarantee, tt.status, tt.rule)
		}
	}
}

// TestKeyReplaced seals a whole trial with other keys under the same names.
func TestKeyReplaced(t *testing.T) {
	h := jurattest.New(t)
	trusted := h.Options(t)
	impostor := jurattest.NewImpostor(t)
	b := impostor.Bundle(t, impostor.Try(t, jury.FinalJudge).Records...)
	h.Try(t, jury.FinalJudge) // so that the trust file has keys for the same names
	trusted.Trust = h.Trust(t)
	r := verify.Bundle(b, trusted)
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Verdict} {
		got := r.Of(g)
		must.Hold(t, got.Status == verify.NotProved, "an impostor's trial: %+v", got)
	}
	if got := r.Of(verify.Authentication); !strings.Contains(got.Reason, "other keys for submitter") || got.Record == "" {
		t.Errorf("the report does not say that the actor has other keys in the trust file: %+v", got)
	}
}

// A readableVector says whether DER can be read as what CAs sign.
type readableVector struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Value   []byte `json:"value"`
	Refused bool   `json:"refused,omitzero"`
}

var readers = map[string]func(der []byte) error{
	"certificate": func(der []byte) error { _, err := x509.ParseCertificate(der); return err },
	"crl":         func(der []byte) error { _, err := trust.ParseCRL(der); return err },
}

// TestCertificatesAreReadAlike lets both verifiers read mutants of certificates and revocation lists. What one of them cannot read
// may be none for the other neither: a file would be refused by one, or a signer unknown.
func TestCertificatesAreReadAlike(t *testing.T) {
	n, seed, _ := chanceOfTest(t, 60, 20_000)
	m := newMutator(t)
	m.Rand = rand.New(rand.NewPCG(seed, 0))
	all := signedByCAs(m)
	var list []readableVector
	refused := 0
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for i := range n {
			der := slices.Clone(all[kind][m.IntN(len(all[kind]))])
			if i > 0 {
				der = m.der(der)
			}
			if len(der) == 0 || der[0] != 0x30 { // a list may also be in PEM
				continue
			}
			v := readableVector{fmt.Sprint(kind, " ", i), kind, der, readers[kind](der) != nil}
			if list = append(list, v); v.Refused {
				refused++
			}
		}
	}
	must.Hold(t, refused != 0 && refused != len(list), "%d of %d are refused", refused, len(list))
	doc := must.Get(json.Marshal(map[string]any{"format": "jurat/vectors/v1", "readable": list}))(t)
	folder := t.TempDir()
	write(t, folder, "readable.json", doc)
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "vectors.py"), filepath.Join(folder, "readable.json"))
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, complaints.String()[:min(complaints.Len(), 4000)])
		for _, v := range list {
			if strings.Contains(complaints.String(), v.Name+":\n") {
				t.Logf("%s: %v: %s", v.Name, readers[v.Kind](v.Value), base64.StdEncoding.EncodeToString(v.Value))
			}
		}
	}
	must.Equal(t, bytes.Count(out, []byte("\n")), len(list), "the second verifier read")
}

// signedByCAs are the certificates, lists and responses in all vectors.
func signedByCAs(m *mutator) map[string][][]byte {
	found := map[string]map[string]bool{}
	add := func(der []byte) {
		for kind, read := range readers {
			if len(der) > 0 && der[0] == 0x30 && read(der) == nil {
				if found[kind] == nil {
					found[kind] = map[string]bool{}
				}
				found[kind][string(der)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		root, is := treeOf(m.files[name]).(map[string]any)
		if !is {
			add(m.files[name])
			continue
		}
		m.walk(root, func(value any, _ func(any)) {
			text, is := value.(string)
			if !is || !strings.HasPrefix(text, "MI") {
				return
			}
			der, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return
			}
			add(der)
			if token, err := parseDER(der); err == nil {
				if set := token.At(1, 0, 3); set != nil && set.Tag == 0xA0 {
					for _, certificate := range set.Members {
						add(certificate.Bytes())
					}
				}
			}
		})
	}
	all := map[string][][]byte{}
	for kind, ders := range found {
		for _, der := range slices.Sorted(maps.Keys(ders)) {
			all[kind] = append(all[kind], []byte(der))
		}
	}
	return all
}

// TestTrustMadeByHand: a trust made in Go is checked at first use, and stays unchanged.
func TestTrustMadeByHand(t *testing.T) {
	r, o := standalone(t, output("a"))
	want := verify.Record(r, o)
	made := func() *trust.Trust {
		trusted := &trust.Trust{Logs: o.Trust.Logs, Witnesses: o.Trust.Witnesses, Quorum: o.Trust.Quorum}
		for _, k := range o.Trust.Keys {
			trusted.Keys = append(trusted.Keys, trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey, Custody: k.Custody,
				NotBefore: k.NotBefore, NotAfter: k.NotAfter, Revoked: k.Revoked, With: k.With, WithFrom: k.WithFrom})
		}
		for _, a := range o.Trust.Authorities {
			trusted.Authorities = append(trusted.Authorities, trust.Authority{Name: a.Name, Certificate: a.Certificate, Clock: a.Clock, Policies: a.Policies})
		}
		return trusted
	}
	by := o
	by.Trust = made()
	for range 2 {
		got := verify.Record(r, by)
		diff := cmp.Diff(want.Guarantees, got.Guarantees)
		must.Hold(t, diff == "" && got.Outcome == verify.Proved, "%s: %s", got.Outcome, diff)
	}
	for name, spoil := range map[string]func(*trust.Trust){
		"a certificate that is none": func(t *trust.Trust) { t.Authorities[0].Certificate = []byte("x") },
		"no certificate":             func(t *trust.Trust) { t.Authorities[0].Certificate = nil },
		"a key that is none":         func(t *trust.Trust) { t.Keys[0].PublicKey = nil },
		"another key id":             func(t *trust.Trust) { t.Keys[0].KeyID = evidence.DigestOf([]byte("x")) },
		"a CA without anything":      func(t *trust.Trust) { t.CAs = append(t.CAs, trust.CA{}) },
		"a witness that is none":     func(t *trust.Trust) { t.Witnesses, t.Quorum = []string{"x"}, 1 },
	} {
		by.Trust = made()
		spoil(by.Trust)
		got := verify.Record(r, by)
		must.Hold(t, got.Outcome == verify.NotProved, "%s: %s: %+v", name, got.Outcome, got.Details)
	}
}

// TestRequire: the report names what does not count. It counts if the reader requires it.
func TestRequire(t *testing.T) {
	r, o := standalone(t, output("a"))
	report := verify.Record(r, o)
	must.Hold(t, report.Outcome == verify.Proved && cmp.Equal(report.Uncounted, []verify.Guarantee{verify.NonRepudiation}),
		"%s, uncounted %v", report.Outcome, report.Uncounted)
	for g, want := range map[verify.Guarantee]verify.Status{verify.NonRepudiation: verify.NotProved, verify.Configuration: verify.Proved, verify.HumanReview: verify.NotProved} {
		o.Require = []verify.Guarantee{g}
		report := verify.Record(r, o)
		must.Hold(t, report.Outcome == want, "%s required: %s, want %s", g, report.Outcome, want)
	}
}

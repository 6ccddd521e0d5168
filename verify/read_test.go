package verify_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify"
)

// reportOf verifies the same bytes in every way: whole, in small pieces, on one core and on several, and as a bundle
// if it opens. All ways must give the same report.
func reportOf(t *testing.T, file []byte, o verify.Options) *verify.Report {
	t.Helper()
	want, wantErr := verify.File(file, o)
	for name, from := range map[string]io.Reader{"in pieces": iotest.HalfReader(bytes.NewReader(file)), "with an end": iotest.DataErrReader(bytes.NewReader(file))} {
		got, err := verify.Read(from, o)
		if !errors.Is(err, wantErr) || !cmp.Equal(got, want) {
			t.Fatalf("%s: %v, %s", name, err, cmp.Diff(want, got))
		}
	}
	before := runtime.GOMAXPROCS(1)
	got, err := verify.File(file, o)
	runtime.GOMAXPROCS(before)
	if !errors.Is(err, wantErr) || !cmp.Equal(got, want) {
		t.Fatalf("on one core: %v, %s", err, cmp.Diff(want, got))
	}
	b, mended, err := evidence.ReadWholeBundle(file)
	opens := wantErr == nil && !slices.ContainsFunc(want.Details, func(f verify.Finding) bool { return f.Rule == "form" }) && want.Of(verify.Content).Rule != "form"
	beginsAsBundle := bytes.HasPrefix(file, []byte(`{"checkpoint":`)) || bytes.HasPrefix(file, []byte(`{"format":"jur`))
	must.Need(t, !beginsAsBundle || (err == nil) == opens, "it parses: %v; it is reported as %+v, %v", err, want, wantErr)
	if err == nil {
		again := verify.Bundle(b, o)
		again.Mended = mended
		diff := cmp.Diff(want, again, cmpopts.EquateEmpty())
		must.Need(t, diff == "", "as a bundle: %s", diff)
	}
	return want
}

// TestAllWaysAgree verifies genuine, forged and damaged files in every way.
func TestAllWaysAgree(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	p := output("a")
	p.Response = jsontext.Value(`"\"quoted\\\" and } ] {"`)
	stray := h.Seal(t, p, "/prompt")
	trial := must.Get(h.Bundle(t, done.Records...).Marshal())(t)
	many := must.Get(h.Bundle(t, append(slices.Clone(done.Records), stray)...).Marshal())(t)
	o := h.Options(t)
	for name, file := range map[string][]byte{"trial": trial, "many": many} {
		for n := range 10 {
			i := 7 + n*(len(file)/10)
			t.Run(fmt.Sprintf("%s damaged %d", name, n), func(t *testing.T) {
				for _, change := range []byte{1, '"' ^ file[i], '}' ^ file[i], ',' ^ file[i]} {
					mutant := bytes.Clone(file)
					mutant[i] ^= change
					reportOf(t, mutant, o)
				}
				reportOf(t, file[:i], o)
				reportOf(t, slices.Concat(file[:i], []byte(" "), file[i:]), o)
			})
		}
	}
	t.Run("whole", func(t *testing.T) {
		for _, file := range [][]byte{trial, many} {
			r := reportOf(t, file, o)
			must.Need(t, r.Records != 0, "%+v", r)
		}
		for _, file := range [][]byte{[]byte(`{"format":"jurat/bundle/v1","records":[]}` + "\n"), []byte(`{"format":"jurat/bundle/v1","records":[]}`), nil, []byte("{")} {
			reportOf(t, file, o)
		}
	})
}

// TestReadFails: a file with a read error gets no report, so it is neither proved nor refuted.
func TestReadFails(t *testing.T) {
	h := jurattest.New(t)
	file := must.Get(h.Bundle(t, h.Try(t, jury.MajorityVote).Records...).Marshal())(t)
	broken := errors.New("the disk is on fire")
	for _, at := range []int{0, 1, 100, len(file) / 2, len(file) - 1, len(file)} {
		r, err := verify.Read(io.MultiReader(bytes.NewReader(file[:at]), iotest.ErrReader(broken)), h.Options(t))
		must.Hold(t, errors.Is(err, broken) && r == nil, "after %d bytes: %v, %+v", at, err, r)
	}
}

// TestEachRecord: Each gets every whole record, in the order of the file.
func TestEachRecord(t *testing.T) {
	h := jurattest.New(t)
	b := h.Bundle(t, h.Try(t, jury.MajorityVote).Records...)
	file := must.Get(b.Marshal())(t)
	var seen []*evidence.Record
	o := h.Options(t)
	o.Each = func(r *evidence.Record) { seen = append(seen, r) }
	check(t, file, o)
	must.Need(t, len(seen) == len(b.Records), "%d of %d records", len(seen), len(b.Records))
	for i, r := range seen {
		must.Hold(t, r.Digest == b.Records[i].Digest && bytes.Equal(r.Canonical(), b.Records[i].Canonical()) && len(r.Timestamps) != 0,
			"record %d: %+v", i, r)
	}
}

// TestSlimness: what verification keeps of a bundle does not grow with its texts.
func TestSlimness(t *testing.T) {
	copied := func(size int) int {
		h := jurattest.New(t)
		var records []*evidence.Record
		for range 50 {
			p := output("a")
			p.Response = jsontext.Value(`"` + string(bytes.Repeat([]byte("x"), size)) + `"`)
			records = append(records, h.Seal(t, p))
		}
		held, copied := verify.KeptOf(h.Bundle(t, records...), h.Options(t))
		must.Hold(t, held <= 0, "a check of %d records with texts of %d bytes holds %d of their documents and texts", len(records), size, held)
		return copied
	}
	small, large := copied(1<<10), copied(64<<10)
	must.Hold(t, large <= small+1<<10, "with texts of 1 KiB %d bytes are copied, with texts of 64 KiB %d", small, large)
}

// TestFaultIsAnAnswer makes the program fail on a file, in the caller's goroutine and in others. The program goes on,
// and nothing is proved or refuted.
func TestFaultIsAnAnswer(t *testing.T) {
	h := jurattest.New(t)
	record := h.Seal(t, output("a"))
	bundle := h.Bundle(t, record, h.Seal(t, output("b")))
	asFile := func(marshal func() ([]byte, error)) []byte { return must.Get(marshal())(t) }
	files := map[string][]byte{"record": asFile(record.Marshal), "bundle": asFile(bundle.Marshal)}
	for name, fail := range map[string]func(o *verify.Options){
		"where a record is examined": func(o *verify.Options) { o.Memory = new(timestamp.Memory) }, // its maps are nil
		"before":                     func(o *verify.Options) { o.CRLs = []*x509.RevocationList{nil} },
		"where a record is shown":    func(o *verify.Options) { o.Each = func(*evidence.Record) { panic("no") } },
	} {
		o := h.Options(t)
		fail(&o)
		for kind, file := range files {
			r, err := verify.File(file, o)
			must.Hold(t, errors.Is(err, verify.ErrFault) && r == nil, "%s, file of a %s: %+v, %v", name, kind, r, err)
		}
		for _, r := range []*verify.Report{verify.Record(record, o), verify.Bundle(bundle, o)} {
			must.Hold(t, r.Outcome == verify.NotProved && r.Of(verify.Content).Status == verify.NotProved && r.Of(verify.Content).Reason != "",
				"%s: %+v", name, r)
		}
	}
}

var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func text(name, content string) *verify.InputFile {
	return &verify.InputFile{Name: name, From: strings.NewReader(content)}
}

func TestOptions(t *testing.T) {
	trust := jurattest.New(t).Trust(t)
	doc := must.Get(trust.Marshal())(t)
	before := now.Add(time.Hour)
	o := must.Get((&verify.Inputs{Now: clock, Before: &before, Trust: text("t", string(doc)), Checkpoint: text("c", "note\n")}).Options())(t)
	want, _ := trust.Fingerprint()
	got, _ := o.Trust.Fingerprint()
	must.Hold(t, got == want && o.At.Equal(now) && o.Before.Equal(before) && o.Checkpoint == "note\n", "%+v", o)
	o, err := (&verify.Inputs{Now: clock}).Options()
	must.Hold(t, err == nil && o.Trust == nil && o.Before.IsZero(), "of nothing: %+v, %v", o, err)
}

func TestOptionsRefused(t *testing.T) {
	var zero time.Time
	for want, q := range map[string]verify.Inputs{
		"at: the moment of checking must be after the year 0": {At: &zero},
		"before: the time must be after the year 0":           {Before: &zero},
		"mine.json: reading trust file":                       {Trust: text("mine.json", "{")},
		"a.crl: ":                                             {CRLs: []verify.InputFile{*text("a.crl", "no list")}},
		"bring the other checkpoint":                          {Consistency: text("p", "{}")},
		"c: an empty file is no checkpoint":                   {Checkpoint: text("c", "")},
		"p: ":                                                 {Checkpoint: text("c", "note\n"), Consistency: text("p", "{")},
		"long.json: more than 67108864 bytes":                 {Trust: text("long.json", strings.Repeat(" ", 64<<20+1))},
		"long.crl: more than 16777216 bytes":                  {CRLs: []verify.InputFile{*text("long.crl", strings.Repeat(" ", 16<<20+1))}},
	} {
		q.Now = clock
		must.Refuse(t, want)(q.Options())
	}
}

func named(when time.Time, reason int) []x509.RevocationListEntry {
	return []x509.RevocationListEntry{revocationOf(3, when, reason)}
}

// der encodes a value.
func der(t testing.TB, v any, params ...string) []byte {
	t.Helper()
	return must.Get(asn1.MarshalWithParams(v, strings.Join(params, ",")))(t)
}

// TestManyExtensions: a list full of different extensions, and one with an entry full of them, are read once through. A reader that compares each extension with each takes a minute for one.
func TestManyExtensions(t *testing.T) {
	var many []pkix.Extension
	for i := range 80_000 {
		many = append(many, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 1000 + i}})
	}
	for rule, change := range map[string]func(list *x509.RevocationList){
		"": func(list *x509.RevocationList) { list.ExtraExtensions = many },
		"revoked": func(list *x509.RevocationList) {
			list.RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped, 1, many...)}
		},
	} {
		b, o, w := certifiedBundle(t, 1)
		list := *w.lists[1]
		change(&list)
		o.CRLs[1] = signList(t, &list, w.made.issuing, w.made.issuingKey)
		got := verify.Bundle(b, o).Of(verify.Authentication)
		must.Hold(t, got.Rule == rule, "want rule %q: %+v", rule, got)
	}
}

// TestOddDates: a date in an extension is a GeneralizedTime in whole seconds of UTC, or the list cannot be used.
func TestOddDates(t *testing.T) {
	for text, rule := range map[string]string{"20251231230000Z": "revoked", "20251231230000.5Z": "revocation", "20260101000000+0100": "revocation", "202512312300Z": "revocation"} {
		b, o, w := certifiedBundle(t, 1)
		list := *w.lists[1]
		date := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 24}, Value: der(t, asn1.RawValue{Tag: asn1.TagGeneralizedTime, Bytes: []byte(text)})}
		list.RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(time.Hour), 1, date)}
		o.CRLs[1] = signList(t, &list, w.made.issuing, w.made.issuingKey)
		got := verify.Bundle(b, o).Of(verify.Authentication)
		must.Hold(t, got.Rule == rule, "%s: want %s: %+v", text, rule, got)
	}
}

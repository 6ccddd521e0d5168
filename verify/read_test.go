package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
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
	if beginsAsBundle := bytes.HasPrefix(file, []byte(`{"checkpoint":`)) || bytes.HasPrefix(file, []byte(`{"format":"jur`)); beginsAsBundle && (err == nil) != opens {
		t.Fatalf("it parses: %v; it is reported as %+v, %v", err, want, wantErr)
	}
	if err == nil {
		again := verify.Bundle(b, o)
		again.Mended = mended
		if diff := cmp.Diff(want, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("as a bundle: %s", diff)
		}
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
			if r := reportOf(t, file, o); r.Records == 0 {
				t.Fatalf("%+v", r)
			}
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
		if !errors.Is(err, broken) || r != nil {
			t.Errorf("after %d bytes: %v, %+v", at, err, r)
		}
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
	if len(seen) != len(b.Records) {
		t.Fatalf("%d of %d records", len(seen), len(b.Records))
	}
	for i, r := range seen {
		if r.Digest != b.Records[i].Digest || !bytes.Equal(r.Canonical(), b.Records[i].Canonical()) || len(r.Timestamps) == 0 {
			t.Errorf("record %d: %+v", i, r)
		}
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
		if held > 0 {
			t.Errorf("a check of %d records with texts of %d bytes holds %d of their documents and texts", len(records), size, held)
		}
		return copied
	}
	if small, large := copied(1<<10), copied(64<<10); large > small+1<<10 {
		t.Errorf("with texts of 1 KiB %d bytes are copied, with texts of 64 KiB %d", small, large)
	}
}

package verify_test

import (
	"os"
	"path/filepath"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestSealedSaysWhatRecordSays compares Sealed with Record on records of the vectors: each record with some of the
// trust files, and each trust file with some of the records. The long form combines all.
func TestSealedSaysWhatRecordSays(t *testing.T) {
	files := must.Get(filepath.Glob(filepath.Join(vectorsDir, "*")))(t)
	const most = 300 // records
	step := 23
	if os.Getenv("JURAT_TEST_LONG") != "" {
		step = 1
	}
	trusts := []*trust.Trust{nil}
	var records []*evidence.Record
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		if trusted, err := trust.Parse(doc); err == nil {
			trusts = append(trusts, trusted)
		}
		if r, err := evidence.Open(doc); err == nil && len(records) < most {
			records = append(records, r)
		}
	}
	if len(records) < 5 || len(trusts) < 3 {
		t.Fatalf("%d records, %d trust files", len(records), len(trusts))
	}
	seen := map[verify.Status]int{}
	for n, trusted := range trusts {
		o := verify.Options{Trust: trusted, Memory: timestamp.NewMemory()}
		for i := n % step; i < len(records); i += step {
			r := records[i]
			alone := *r
			alone.Log = nil // its place is proved otherwise
			report := verify.Record(&alone, o)
			want := verify.Proved
			for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
				f := report.Of(g)
				if f.Rule == verify.Skew { // the record was sealed all the same
					continue
				}
				if s := f.Status; s == verify.Refuted || want == verify.Proved {
					want = s
				}
			}
			got := verify.Sealed(&alone, o)
			if got.Status != want {
				t.Errorf("record %s: %+v, Record says %s", r.Payload.RecordID, got, want)
			}
			seen[got.Status]++
		}
	}
	for _, s := range []verify.Status{verify.Proved, verify.NotProved, verify.Refuted} {
		if seen[s] == 0 {
			t.Errorf("none is %s", s)
		}
	}
}

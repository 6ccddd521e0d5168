package verify_test

import (
	"os"
	"path/filepath"
	"testing"

	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify"
)

// TestSealedSaysWhatRecordSays holds Sealed against Record on every record of the vectors, under every trust file.
func TestSealedSaysWhatRecordSays(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	const most = 300 // records: each is asked under each trust file
	trusts := []*verify.Trust{nil}
	var records []*evidence.Record
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		if trust, err := verify.ParseTrust(doc); err == nil {
			trusts = append(trusts, trust)
		}
		if r, err := evidence.Open(doc); err == nil && len(records) < most {
			records = append(records, r)
		}
	}
	if len(records) < 5 || len(trusts) < 3 {
		t.Fatalf("%d records, %d trust files", len(records), len(trusts))
	}
	seen := map[verify.Status]int{}
	for _, trust := range trusts {
		o := verify.Options{Trust: trust, Memory: timestamp.NewMemory()}
		for _, r := range records {
			alone := *r
			alone.Log = nil // its place is proved otherwise
			report := verify.Record(&alone, o)
			want := verify.Proved
			for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
				f := report.Of(g)
				if f.Rule == verify.Skew { // which says nothing against its having been sealed
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

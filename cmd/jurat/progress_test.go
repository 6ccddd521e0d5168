package main

import (
	"testing"
	"time"

	"jurat/internal/ledger/fsck"
)

func TestHowFar(t *testing.T) {
	for want, test := range map[string]struct {
		done, total int64
		in          time.Duration
	}{
		"examined: 0 of 10": {0, 10, time.Second},
		"examined: 3 of 10, 1.5 a second, about 5s more":              {3, 10, 2 * time.Second},
		"examined: 1 of 61, 0.5 a second, about 2m0s more":            {1, 61, 2 * time.Second},
		"examined: 500000 of 1000000, 12500 a second, about 40s more": {500_000, 1_000_000, 40 * time.Second},
		"examined: 10 of 10, 5 a second":                              {10, 10, 2 * time.Second},
		"examined: 9999 of 10000, 5000 a second, about 1s more":       {9999, 10_000, 1999800 * time.Microsecond},
		"examined: 12 of 11, 6 a second":                              {12, 11, 2 * time.Second},
	} {
		if got := howFar("examined", test.done, test.total, test.in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNameDamages: JSON output and text output have the same names for damages.
func TestNameDamages(t *testing.T) {
	orphan := fsck.Damage{Kind: fsck.DamageOrphan, Index: -1, Detail: "a file"}
	row := fsck.Damage{Kind: fsck.DamageRow, Index: 0, RecordID: "id", Detail: "why"}
	if e := nameDamages([]fsck.Damage{orphan}, 3); !e.Whole || e.Records != 3 || e.Damages[0].Index != nil || !e.Damages[0].Harmless {
		t.Errorf("%+v", e)
	}
	e := nameDamages([]fsck.Damage{row, orphan}, 3)
	if d := e.Damages[0]; e.Whole || len(e.Damages) != 2 || *d.Index != 0 || d.RecordID != "id" || d.Meaning != row.Kind.Meaning() || d.Detail != "why" {
		t.Errorf("%+v", e)
	}
}

package verify_test

import (
	"strings"
	"testing"
	"time"

	"jurat/jurattest"
	"jurat/verify"
)

var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func text(name, content string) *verify.InputFile {
	return &verify.InputFile{Name: name, From: strings.NewReader(content)}
}

func TestOptions(t *testing.T) {
	trust := jurattest.New(t).Trust(t)
	doc, err := trust.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	before := now.Add(time.Hour)
	o, err := (&verify.Inputs{Now: clock, Before: &before, Trust: text("t", string(doc)), Checkpoint: text("c", "note\n")}).Options()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := trust.Fingerprint()
	if got, _ := o.Trust.Fingerprint(); got != want || !o.At.Equal(now) || !o.Before.Equal(before) || o.Checkpoint != "note\n" {
		t.Errorf("%+v", o)
	}
	if o, err := (&verify.Inputs{Now: clock}).Options(); err != nil || o.Trust != nil || !o.Before.IsZero() {
		t.Errorf("of nothing: %+v, %v", o, err)
	}
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
		if _, err := q.Options(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

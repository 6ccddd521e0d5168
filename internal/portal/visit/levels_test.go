package visit_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

func text(name, content string) visit.Source {
	return visit.Source{Name: name, Size: int64(len(content)), From: strings.NewReader(content)}
}

// trusting returns the house's trust file after a change.
func trusting(t *testing.T, h *jurattest.House, change func(*trust.Trust)) *trust.Trust {
	t.Helper()
	file := *h.Trust(t)
	file.Keys, file.Authorities = slices.Clone(file.Keys), slices.Clone(file.Authorities)
	change(&file)
	return &file
}

func independent(file *trust.Trust) {
	for i := range file.Keys {
		file.Keys[i].Custody = trust.ByOwner
	}
	file.Authorities[0].Clock = trust.Independent
}

// TestFilesInAnyOrder: trust file, policy, checkpoint and entries are recognised by what they are, in every order, and each level is met
// and not met.
func TestFilesInAnyOrder(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	record := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, said(1, "The A9."))))(t)
	policy := func(level assurance.Level) visit.Source {
		return text("p", fmt.Sprintf(`{"format":"jurat/policy/v1","level":%q}`, level))
	}
	known := text("k", record.Log.Checkpoint)
	for _, tt := range []struct {
		sources []visit.Source
		want    verify.Status
		level   assurance.Level
	}{
		{[]visit.Source{source(t, "t", h.Trust(t)), source(t, "r", record)}, verify.Proved, assurance.Operator},
		{[]visit.Source{policy(assurance.Signed), source(t, "r", record), source(t, "t", h.Trust(t))}, verify.Proved, assurance.Operator},
		{[]visit.Source{policy(assurance.Signed), source(t, "r", record)}, verify.NotProved, ""},
		{[]visit.Source{policy(assurance.Operator), source(t, "r", record), source(t, "t", h.Trust(t))}, verify.Proved, assurance.Operator},
		{[]visit.Source{policy(assurance.Operator), source(t, "r", record), source(t, "t", trusting(t, h, func(f *trust.Trust) { f.Authorities = []trust.Authority{} }))}, verify.NotProved, assurance.Signed},
		{[]visit.Source{source(t, "r", record), policy(assurance.Independent), source(t, "t", h.Trust(t)), known}, verify.NotProved, assurance.Operator},
		{[]visit.Source{known, policy(assurance.Independent), source(t, "t", trusting(t, h, independent)), source(t, "r", record)}, verify.Proved, assurance.Independent},
		{[]visit.Source{known, policy(assurance.IndependentQualified), source(t, "t", trusting(t, h, independent)), source(t, "r", record)}, verify.NotProved, assurance.Independent},
	} {
		for range tt.sources {
			tt.sources = append(tt.sources[1:], tt.sources[0]) // each order in turn
			places := make([]int, len(tt.sources))
			for i := range places {
				places[i] = i
			}
			request := must.Get(json.Marshal(map[string]any{"files": places, "sort": true}))(t)
			v := &visit.Visit{Now: clock}
			answer, err := v.Verify(request, tt.sources)
			if err != nil || len(answer.Files) != 1 || answer.Files[0].Name != "r" {
				t.Fatalf("%+v, %v", answer, err)
			}
			var report verify.Report
			if err := json.Unmarshal([]byte(answer.Files[0].Report), &report); err != nil || report.Outcome != tt.want || report.Basis.Level != tt.level {
				t.Errorf("%s, %+v, %v; want %s, %s", report.Outcome, report.Basis, err, tt.want, tt.level)
			}
			for _, lang := range words.Langs() {
				if view, err := v.View(0, lang); err != nil || view.Rests == "" || view.Rests != words.RestsOn(lang, &report) {
					t.Errorf("%s: %+v, %v", lang, view, err)
				}
			}
		}
	}
}

// TestUses: each kind of file is recognised, and one that only looks so is not.
func TestUses(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	record := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, said(1, "The A9."))))(t)
	for _, tt := range []struct {
		source visit.Source
		want   visit.Use
	}{
		{source(t, "trust.json", record), visit.ToVerify}, {source(t, "record", h.Trust(t)), visit.AsTrust},
		{source(t, "b", h.Bundle(t, record)), visit.ToVerify}, {text("c", record.Log.Checkpoint), visit.AsCheckpoint},
		{text("e", string(record.LogEntry(record.Log.LogCounts))+"\n"), visit.AsEntries}, {text("p", `{"name":"x","format":"jurat/policy/v1"}`), visit.AsPolicy},
		{text("x", `{"format":"jurat/consistency/v1"}`), visit.AsConsistency}, {text("pem", "-----BEGIN X509 CRL-----\n"), visit.AsCRL},
		{text("n", ""), visit.ToVerify}, {text("z", "PK\x03\x04"), visit.ToVerify}, {text("d", "0\x03\x04"), visit.ToVerify}, {text("j", `{"format":`), visit.ToVerify},
		{text("s", "\xd2\x84\x40\n\n— a statement whose payload looks like a checkpoint"), visit.ToVerify},
	} {
		if got := visit.UseOf(&tt.source); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.source.Name, got, tt.want)
		}
	}
	v := &visit.Visit{Now: clock}
	two := []visit.Source{source(t, "t", h.Trust(t)), source(t, "u", h.Trust(t)), source(t, "r", record)}
	if _, err := v.Verify([]byte(`{"files":[0,1,2],"sort":true}`), two); !errors.Is(err, visit.ErrTwice) {
		t.Errorf("two trust files: %v", err)
	}
	if _, err := v.Verify([]byte(`{"files":[0],"sort":true}`), two); err == nil {
		t.Error("a trust file alone was verified")
	}
}

// TestChangedRecordIsNamed: of a case file in which one record was changed, the view names that one, who said it, and no other.
func TestChangedRecordIsNamed(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	records := []*evidence.Record{h.Seal(t, said(1, "The A9.")), h.Seal(t, said(2, "The A7."))}
	file := must.Get(h.Bundle(t, records...).Marshal())(t)
	for name, change := range map[string]func(doc []byte) []byte{
		"nothing":     func(doc []byte) []byte { return doc },
		"a signature": func(doc []byte) []byte { return bytes.Replace(doc, in64(records[1]), in64(records[0]), 1) },
		"a text":      func(doc []byte) []byte { return bytes.Replace(doc, []byte("The A7."), []byte("The A8."), 1) },
	} {
		doc := change(bytes.Clone(file))
		v := &visit.Visit{Now: clock}
		if _, err := v.Verify([]byte(`{"files":[0,1],"sort":true}`), []visit.Source{text("b", string(doc)), source(t, "t", h.Trust(t))}); err != nil {
			t.Fatal(err)
		}
		for _, lang := range words.Langs() {
			view := must.Get(v.View(0, lang))(t)
			want := 0
			if name != "nothing" {
				want = 1
			}
			if len(view.Changed) != want || want == 1 && (!strings.Contains(view.Changed[0], records[1].Payload.RecordID) || !strings.Contains(view.Changed[0], `"courier"`)) {
				t.Errorf("%s, %s: %q, %s", lang, name, view.Changed, view.Outcome)
			}
		}
	}
}

func in64(r *evidence.Record) []byte {
	return []byte(base64.StdEncoding.EncodeToString(r.Signatures[0]))
}

package visit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/property"
	"jurat/verify"
)

func clock() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }

func source(t *testing.T, name string, file interface{ Marshal() ([]byte, error) }) visit.Source {
	t.Helper()
	doc := must.Get(file.Marshal())(t)
	return visit.Source{Name: name, Size: int64(len(doc)), From: bytes.NewReader(doc)}
}

func said(i int, text string) evidence.Payload {
	return evidence.Payload{AgentID: "courier", RequestID: fmt.Sprintf("r-%d", i), Timestamp: "2025-12-31T23:59:00Z", Model: "m", ModelVersion: "1",
		Prompt: jsontext.Value(`"Plan."`), Context: jsontext.Value(`"Snow."`), Response: jsontext.Value(`"` + text + `"`), Parameters: jsontext.Value(`{"temperature":0}`)}
}

func TestVisit(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	trial, other := h.Try(t, jury.MajorityVote), jurattest.NewImpostor(t)
	trusted := h.Trust(t)
	sources := []visit.Source{source(t, "case", h.Bundle(t, trial.Records...)), source(t, "trust", trusted), source(t, "others", other.Trust(t))}
	var read []int64
	v := &visit.Visit{Now: clock, Progress: func(_ int, n, size int64) {
		if read = append(read, n); n > size {
			t.Errorf("%d of %d bytes", n, size)
		}
	}}
	for trust, want := range map[string]verify.Status{`"trust":1,`: verify.Proved, `"trust":2,`: verify.NotProved, "": verify.NotProved} {
		answer, err := v.Verify([]byte(`{`+trust+`"files":[0]}`), sources)
		if err != nil || len(answer.Files) != 1 || answer.Files[0].Error != "" {
			t.Fatalf("%+v, %v", answer, err)
		}
		for _, lang := range words.Langs() {
			view, err := v.View(0, lang)
			if err != nil || view.Outcome != want || len(view.Guarantees) < 8 || len(view.Statement) == 0 || len(view.NotShown) < 4 {
				t.Errorf("%s %s: %+v, %v", trust, lang, view, err)
			}
		}
	}
	if len(read) < 3 || read[0] == 0 {
		t.Errorf("read %v", read)
	}
	answer, err := v.Trust(sources[1])
	if want, _ := trusted.Fingerprint(); err != nil || answer.Fingerprint != want.String() || answer.Keys == 0 || answer.Logs != 1 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestAnotherSpelling: the portal reads every file that the command reads, and the result says that the file was mended.
func TestAnotherSpelling(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	file := must.Get(h.Bundle(t, h.Try(t, jury.MajorityVote).Records...).Marshal())(t)
	indented := jsontext.Value(bytes.Clone(file))
	must.Do(t, indented.Indent())
	crlf := append([]byte("\ufeff"), bytes.ReplaceAll(indented, []byte("\n"), []byte("\r\n"))...)
	i := bytes.Index(file, []byte(`"records":`))
	behind := slices.Concat([]byte("{"), file[i:len(file)-2], []byte(","), bytes.TrimSuffix(file[1:i], []byte(",")), []byte("}"))
	for name, doc := range map[string][]byte{"as it was": file, "indented": crlf, "checkpoint behind": behind} {
		sources := []visit.Source{{Name: name, Size: int64(len(doc)), From: bytes.NewReader(doc)}, source(t, "trust", h.Trust(t))}
		v := &visit.Visit{Now: clock, Progress: func(_ int, n, size int64) {
			if n > size {
				t.Errorf("%s: %d of %d bytes", name, n, size)
			}
		}}
		if _, err := v.Verify([]byte(`{"trust":1,"files":[0]}`), sources); err != nil {
			t.Fatal(err)
		}
		view, err := v.View(0, "en")
		if err != nil || view.Outcome != verify.Proved || view.Mended != (name != "as it was") {
			t.Errorf("%s: %+v, %v", name, view, err)
		}
	}
}

func TestRecordsShowWhatWasSaid(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	first, second := h.Seal(t, said(1, "A9"), "/prompt", "/context"), h.Seal(t, said(2, "A3"))
	for i := range first.Disclosures { // the file does not disclose the context
		if first.Disclosures[i].Pointer == "/context" {
			first.Disclosures = append(first.Disclosures[:i:i], first.Disclosures[i+1:]...)
			break
		}
	}
	sources := []visit.Source{source(t, "b", h.Bundle(t, first, second)), source(t, "t", h.Trust(t))}
	v := &visit.Visit{Now: clock}
	if _, err := v.Verify([]byte(`{"files":[0],"trust":1}`), sources); err != nil {
		t.Fatal(err)
	}
	records, err := v.Records(0, 0, 10, words.English)
	if err != nil || len(records) != 2 {
		t.Fatalf("%+v, %v", records, err)
	}
	members := map[string]visit.Member{}
	for _, m := range records[0].Members {
		members[m.Pointer] = m
	}
	if m := members["prompt"]; m.Text != "Plan." || !m.Apart || m.Withheld || m.JSON {
		t.Errorf("disclosed: %+v", m)
	}
	if m := members["context"]; !m.Withheld || m.Apart || strings.Contains(m.Text, "Snow") {
		t.Errorf("withheld: %+v", m)
	}
	if m := members["parameters"]; !m.JSON || !strings.Contains(m.Text, `"temperature": 0`) {
		t.Errorf("JSON: %+v", m)
	}
	if records[0].Members[0].Pointer != "prompt" || records[1].Index != 1 || records[1].Proved == "" || len(records[1].Statement) == 0 ||
		records[1].Signed != string(second.Canonical()) {
		t.Errorf("%+v", records[1])
	}
}

// Records that are too large to keep are verified, and the view says that they are not shown.
func TestNotEverythingIsHeld(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	long := strings.Repeat("x", 23<<20)
	bundle := h.Bundle(t, h.Seal(t, said(1, long)), h.Seal(t, said(2, long)), h.Seal(t, said(3, long)), h.Seal(t, said(4, "short")))
	v := &visit.Visit{Now: clock}
	if _, err := v.Verify([]byte(`{"files":[0],"trust":1}`), []visit.Source{source(t, "b", bundle), source(t, "t", h.Trust(t))}); err != nil {
		t.Fatal(err)
	}
	view, err := v.View(0, words.English)
	if err != nil || view.Records != 4 || view.Shown != 2 {
		t.Errorf("%d of %d are shown, %v", view.Shown, view.Records, err)
	}
}

// A file that does not open shows nothing, even if some of its records are valid.
func TestNothingIsShownOfADamagedFile(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	doc := must.Get(h.Bundle(t, h.Seal(t, said(1, "A9")), h.Seal(t, said(2, "the other"))).Marshal())(t)
	doc = bytes.Replace(doc, []byte("the other"), []byte("THE OTHER"), 1)
	v := &visit.Visit{Now: clock}
	if _, err := v.Verify([]byte(`{"files":[0]}`), []visit.Source{{Name: "b", Size: int64(len(doc)), From: bytes.NewReader(doc)}}); err != nil {
		t.Fatal(err)
	}
	view, err := v.View(0, words.English)
	if err != nil || view.Outcome != verify.Refuted || view.Shown != 0 || len(view.Statement) != 0 {
		t.Errorf("%+v, %v", view, err)
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the disk is gone") }

func TestRefusals(t *testing.T) {
	letter := visit.Source{Name: "letter", Size: 4, From: strings.NewReader("Dear")}
	gone := visit.Source{Name: "gone", Size: 4, From: broken{}}
	v := &visit.Visit{Now: clock}
	for request, want := range map[string]string{
		`{"files":[7]}`:                  "no source 7",
		`{"files":[-1]}`:                 "no source -1",
		`{"files":[0],"trust":9}`:        "no source 9",
		`{"files":[0],"crls":[9]}`:       "no source 9",
		`{"files":[0],"entries":9}`:      "no source 9",
		`{"files":[0],"trust":0}`:        "letter: reading trust file",
		`{"files":[0],"trust":1}`:        "gone: the disk is gone",
		`{"files":[0],"at":"yesterday"}`: `"yesterday" is not a time`,
		`{"files":[0],"consistency":0}`:  "bring the other checkpoint",
		`{"files":[0],"unsafe":true}`:    "unknown",
		`{`:                              "reading the request",
	} {
		if _, err := v.Verify([]byte(request), []visit.Source{letter, gone}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", request, err, want)
		}
	}
	answer, err := v.Verify([]byte(`{"files":[0,1]}`), []visit.Source{letter, gone})
	if err != nil || !strings.Contains(answer.Files[0].Error, "neither a sealed record") || !strings.Contains(answer.Files[1].Error, "the disk is gone") {
		t.Errorf("%+v, %v", answer, err)
	}
	for _, file := range []int{-1, 0, 2} {
		if _, err := v.View(file, ""); err == nil {
			t.Errorf("file %d has a view", file)
		}
		if _, err := v.Records(file, 0, 1, ""); err == nil {
			t.Errorf("file %d has records", file)
		}
	}
}

var _ io.ReaderAt = broken{}

// TestProofs: of each record of a file, the portal says in each language what its proofs show of hidden values, and whether they hold.
func TestProofs(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	records := []*evidence.Record{hiding(t, h, 1), hiding(t, h, 2)}
	records[1].Properties[0].Proof[40] ^= 1 // it does not hold
	v := &visit.Visit{Now: clock}
	sources := []visit.Source{source(t, "records", h.Bundle(t, records...)), source(t, "trust", h.Trust(t))}
	if _, err := v.Verify([]byte(`{"trust":1,"files":[0]}`), sources); err != nil {
		t.Fatal(err)
	}
	for _, lang := range words.Langs() {
		shown, err := v.Records(0, 0, 2, lang)
		if err != nil || len(shown) != 2 {
			t.Fatalf("%+v, %v", shown, err)
		}
		sentence, _, _ := strings.Cut(words.Of(lang)["statement.hidden.range"], "{pointer}")
		for i, want := range []verify.Status{verify.Proved, verify.Refuted} {
			if says := strings.Contains(strings.Join(shown[i].Statement, " "), sentence); says != (want == verify.Proved) {
				t.Errorf("%s, record %d: %q", lang, i, shown[i].Statement)
			}
			at := slices.IndexFunc(shown[i].Lines, func(l visit.Line) bool { return l.Guarantee == verify.Property })
			if at < 0 || shown[i].Lines[at].Status != want {
				t.Errorf("%s, record %d, line %d: %+v", lang, i, at, shown[i].Lines)
			}
		}
	}
}

// hiding seals a record with a hidden amount, and proves that it is from 0 to 5000.
func hiding(t *testing.T, h *jurattest.House, i int) *evidence.Record {
	t.Helper()
	must := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	p := said(i, "Done.")
	p.Metadata = jsontext.Value(`{"amount":120}`)
	draft, err := evidence.NewDraft(p)
	must(err)
	signers, err := h.Keys.Signers(t.Context(), draft.Role(), draft.Actor())
	must(err)
	r, err := h.Ledger.Seal(t.Context(), draft.SealingProvable(map[string]property.Kind{"/metadata/amount": property.Integer}), signers)
	must(err)
	s := &property.Statement{Format: property.Format, Form: property.Range, Kind: property.Integer, Lo: jsontext.Value("0"), Hi: jsontext.Value("5000"),
		Members: []property.Member{{Record: r.Digest.String(), Pointer: "/metadata/amount"}}}
	proof, err := property.Prove(s, property.Opening{Value: r.Disclosures[0].Value, Salt: [32]byte(r.Disclosures[0].Salt)}, rand.NewChaCha8([32]byte{7}))
	must(err)
	doc, err := s.Bytes()
	must(err)
	made := *r
	made.Disclosures, made.Properties = nil, []evidence.PropertyProof{{Proof: proof, Statement: doc}}
	return &made
}

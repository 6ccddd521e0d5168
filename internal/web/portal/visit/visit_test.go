package visit_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/property"
	"jurat/evidence/scitt"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/portal/visit"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
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
		read = append(read, n)
		must.Hold(t, n <= size, "%d of %d bytes", n, size)
	}}
	for trust, want := range map[string]verify.Status{`"trust":1,`: verify.Proved, `"trust":2,`: verify.NotProved, "": verify.NotProved} {
		answer, err := v.Verify([]byte(`{`+trust+`"files":[0]}`), sources)
		must.Need(t, err == nil && len(answer.Files) == 1 && answer.Files[0].Error == "", "%+v, %v", answer, err)
		for _, lang := range words.Langs() {
			view, err := v.View(0, lang)
			must.Hold(t, err == nil && view.Outcome == want && len(view.Guarantees) >= 8 && len(view.Statement) != 0 && len(view.NotShown) >= 4,
				"%s %s: %+v, %v", trust, lang, view, err)
		}
	}
	must.Hold(t, len(read) >= 3 && read[0] != 0, "read %v", read)
	answer, err := v.Trust(sources[1])
	want, _ := trusted.Fingerprint()
	must.Hold(t, err == nil && answer.Fingerprint == want.String() && answer.Keys != 0 && answer.Logs == 1, "%+v, %v", answer, err)
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
			must.Hold(t, n <= size, "%s: %d of %d bytes", name, n, size)
		}}
		must.Get(v.Verify([]byte(`{"trust":1,"files":[0]}`), sources))(t)
		view, err := v.View(0, "en")
		must.Hold(t, err == nil && view.Outcome == verify.Proved && view.Mended == (name != "as it was"), "%s: %+v, %v", name, view, err)
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
	must.Get(v.Verify([]byte(`{"files":[0],"trust":1}`), sources))(t)
	records, err := v.Records(0, 0, 10, words.English)
	must.Need(t, err == nil && len(records) == 2, "%+v, %v", records, err)
	members := map[string]visit.Member{}
	for _, m := range records[0].Members {
		members[m.Pointer] = m
	}
	m := members["prompt"]
	must.Hold(t, m.Text == "Plan." && m.Apart && !m.Withheld && !m.JSON, "disclosed: %+v", m)
	m = members["context"]
	must.Hold(t, m.Withheld && !m.Apart && !strings.Contains(m.Text, "Snow"), "withheld: %+v", m)
	m = members["parameters"]
	must.Hold(t, m.JSON && strings.Contains(m.Text, `"temperature": 0`), "JSON: %+v", m)
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
	must.Get(v.Verify([]byte(`{"files":[0],"trust":1}`), []visit.Source{source(t, "b", bundle), source(t, "t", h.Trust(t))}))(t)
	view, err := v.View(0, words.English)
	must.Hold(t, err == nil && view.Records == 4 && view.Shown == 2, "%d of %d are shown, %v", view.Shown, view.Records, err)
}

// A file that does not open shows nothing, even if some of its records are valid.
func TestNothingIsShownOfADamagedFile(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	doc := must.Get(h.Bundle(t, h.Seal(t, said(1, "A9")), h.Seal(t, said(2, "the other"))).Marshal())(t)
	doc = bytes.Replace(doc, []byte("the other"), []byte("THE OTHER"), 1)
	v := &visit.Visit{Now: clock}
	must.Get(v.Verify([]byte(`{"files":[0]}`), []visit.Source{{Name: "b", Size: int64(len(doc)), From: bytes.NewReader(doc)}}))(t)
	view, err := v.View(0, words.English)
	must.Hold(t, err == nil && view.Outcome == verify.Refuted && view.Shown == 0 && len(view.Statement) == 0, "%+v, %v", view, err)
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
		must.Refuse(t, want, request)(v.Verify([]byte(request), []visit.Source{letter, gone}))
	}
	answer, err := v.Verify([]byte(`{"files":[0,1]}`), []visit.Source{letter, gone})
	must.Hold(t, err == nil && strings.Contains(answer.Files[0].Error, "neither a sealed record") && strings.Contains(answer.Files[1].Error, "the disk is gone"),
		"%+v, %v", answer, err)
	for _, file := range []int{-1, 0, 2} {
		must.Refuse(t, "", "file", file, "has a view")(v.View(file, ""))
		must.Refuse(t, "", "file", file, "has records")(v.Records(file, 0, 1, ""))
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
	must.Get(v.Verify([]byte(`{"trust":1,"files":[0]}`), sources))(t)
	for _, lang := range words.Langs() {
		shown, err := v.Records(0, 0, 2, lang)
		must.Need(t, err == nil && len(shown) == 2, "%+v, %v", shown, err)
		sentence, _, _ := strings.Cut(words.Of(lang)["statement.hidden.range"], "{pointer}")
		for i, want := range []verify.Status{verify.Proved, verify.Refuted} {
			if says := strings.Contains(strings.Join(shown[i].Statement, " "), sentence); says != (want == verify.Proved) {
				t.Errorf("%s, record %d: %q", lang, i, shown[i].Statement)
			}
			at := slices.IndexFunc(shown[i].Lines, func(l words.Line) bool { return l.Guarantee == verify.Property })
			must.Hold(t, at >= 0 && shown[i].Lines[at].Status == want, "%s, record %d, line %d: %+v", lang, i, at, shown[i].Lines)
		}
	}
}

// hiding seals a record with a hidden amount, and proves that it is from 0 to 5000.
func hiding(t *testing.T, h *jurattest.House, i int) *evidence.Record {
	t.Helper()
	p := said(i, "Done.")
	p.Metadata = jsontext.Value(`{"amount":120}`)
	draft, err := evidence.NewDraft(p)
	must.Do(t, err)
	signers, err := h.Keys.Signers(t.Context(), draft.Role(), draft.Actor())
	must.Do(t, err)
	r, err := h.Ledger.Seal(t.Context(), draft.SealingApart(map[string]property.Kind{"/metadata/amount": property.Integer}), signers)
	must.Do(t, err)
	s := &property.Statement{Format: property.Format, Form: property.Range, Kind: property.Integer, Lo: jsontext.Value("0"), Hi: jsontext.Value("5000"),
		Members: []property.Member{{Record: r.Digest.String(), Pointer: "/metadata/amount"}}}
	proof, err := property.Prove(s, property.Opening{Value: r.Disclosures[0].Value, Salt: [32]byte(r.Disclosures[0].Salt)}, rand.NewChaCha8([32]byte{7}))
	must.Do(t, err)
	doc := must.Get(s.Bytes())(t)
	made := *r
	made.Disclosures, made.Properties = nil, []evidence.PropertyProof{{Proof: proof, Statement: doc}}
	return &made
}

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
	policy := func(level verify.Level) visit.Source {
		return text("p", fmt.Sprintf(`{"format":"jurat/policy/v1","level":%q}`, level))
	}
	known := text("k", record.Log.Checkpoint)
	for _, tt := range []struct {
		sources []visit.Source
		want    verify.Status
		level   verify.Level
	}{
		{[]visit.Source{source(t, "t", h.Trust(t)), source(t, "r", record)}, verify.Proved, verify.LevelOperator},
		{[]visit.Source{policy(verify.LevelSigned), source(t, "r", record), source(t, "t", h.Trust(t))}, verify.Proved, verify.LevelOperator},
		{[]visit.Source{policy(verify.LevelSigned), source(t, "r", record)}, verify.NotProved, ""},
		{[]visit.Source{policy(verify.LevelOperator), source(t, "r", record), source(t, "t", h.Trust(t))}, verify.Proved, verify.LevelOperator},
		{[]visit.Source{policy(verify.LevelOperator), source(t, "r", record), source(t, "t", trusting(t, h, func(f *trust.Trust) { f.Authorities = []trust.Authority{} }))}, verify.NotProved, verify.LevelSigned},
		{[]visit.Source{source(t, "r", record), policy(verify.LevelIndependent), source(t, "t", h.Trust(t)), known}, verify.NotProved, verify.LevelOperator},
		{[]visit.Source{known, policy(verify.LevelIndependent), source(t, "t", trusting(t, h, independent)), source(t, "r", record)}, verify.Proved, verify.LevelIndependent},
		{[]visit.Source{known, policy(verify.LevelQualified), source(t, "t", trusting(t, h, independent)), source(t, "r", record)}, verify.NotProved, verify.LevelIndependent},
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
			must.Need(t, err == nil && len(answer.Files) == 1 && answer.Files[0].Name == "r", "%+v, %v", answer, err)
			var report verify.Report
			if err := json.Unmarshal([]byte(answer.Files[0].Report), &report); err != nil || report.Outcome != tt.want || report.Basis.Level != tt.level {
				t.Errorf("%s, %+v, %v; want %s, %s", report.Outcome, report.Basis, err, tt.want, tt.level)
			}
			for _, lang := range words.Langs() {
				view, err := v.View(0, lang)
				must.Hold(t, err == nil && view.Rests != "" && view.Rests == words.RestsOn(lang, &report), "%s: %+v, %v", lang, view, err)
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
		{text("e", string(record.LogEntry(record.Log.Counts()))+"\n"), visit.AsEntries}, {text("p", `{"name":"x","format":"jurat/policy/v1"}`), visit.AsPolicy},
		{text("x", `{"format":"jurat/consistency/v1"}`), visit.AsConsistency}, {text("pem", "-----BEGIN X509 CRL-----\n"), visit.AsCRL},
		{text("n", ""), visit.ToVerify}, {text("z", "PK\x03\x04"), visit.ToVerify}, {text("d", "0\x03\x04"), visit.ToVerify}, {text("j", `{"format":`), visit.ToVerify},
		{text("s", "\xd2\x84\x40\n\n— a statement whose payload looks like a checkpoint"), visit.ToVerify},
	} {
		must.Equal(t, visit.UseOf(&tt.source), tt.want, tt.source.Name)
	}
	v := &visit.Visit{Now: clock}
	two := []visit.Source{source(t, "t", h.Trust(t)), source(t, "u", h.Trust(t)), source(t, "r", record)}
	must.Fail(t, visit.ErrTwice)(v.Verify([]byte(`{"files":[0,1,2],"sort":true}`), two))
	_, err := v.Verify([]byte(`{"files":[0],"sort":true}`), two)
	must.Hold(t, err != nil, "a trust file alone was verified")
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
		must.Get(v.Verify([]byte(`{"files":[0,1],"sort":true}`), []visit.Source{text("b", string(doc)), source(t, "t", h.Trust(t))}))(t)
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

// TestStatements: a SCITT statement of a record is verified in the portal as the command verifies it. One that holds no record is refused.
func TestStatements(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	record := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, said(1, "The A9."))))(t)
	receipt := must.Get(h.SignReceipt(record))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator"))(t)
	own := must.Get(scitt.Sign(record, scitt.Issuer(evidence.RoleOperator, "operator"), signers[0], receipt))(t)
	others := "\xd2\x84\x43\xa1\x01\x26\xa0\x44Paid\x41\x00"
	v := &visit.Visit{Now: clock}
	answer, err := v.Verify([]byte(`{"files":[0,1,2],"sort":true}`), []visit.Source{text("own", string(own)), source(t, "trust", h.Trust(t)), text("others", others)})
	must.Need(t, err == nil && len(answer.Files) == 2, "%+v, %v", answer, err)
	var report verify.Report
	if err := json.Unmarshal([]byte(answer.Files[0].Report), &report); err != nil || report.Outcome != verify.Proved || report.Kind != verify.OneRecord || report.Statement == nil {
		t.Errorf("%v: %s", err, answer.Files[0].Report)
	}
	must.Equal(t, answer.Files[1].Report, "")
}

// TestExchanges: the files of two owners who recorded one exchange say so of each other, in every language, and a file alone does not.
func TestExchanges(t *testing.T) {
	a, b := jurattest.NewForStrangers(t), jurattest.NewNeighbour(t)
	sees := func(h *jurattest.House, side evidence.Side) visit.Source {
		p := must.Get(observed.Draft(observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: "r", ActionType: evidence.ObservedMessage, Timestamp: evidence.FormatTime(jurattest.Start)},
			Observed: evidence.Observed{Side: side, Agent: "agent-" + string(side), Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "http", Ended: evidence.Complete, Began: evidence.FormatTime(jurattest.Start), EndedMS: observed.Milliseconds(time.Second)},
			Request:  observed.Whole("a question", ""), Response: observed.Whole("an answer", "")}))(t).Payload
		return source(t, string(side), h.Bundle(t, h.Seal(t, p)))
	}
	asked, answered := sees(a, evidence.Asked), sees(b, evidence.Answered)
	both := must.Get(trust.Join(a.Trust(t), b.Trust(t)))(t)
	sources := []visit.Source{asked, answered, source(t, "trust", both)}
	for files, want := range map[string]bool{`[0,1]`: true, `[0]`: false} {
		v := &visit.Visit{Now: clock}
		must.Get(v.Verify([]byte(`{"trust":2,"files":`+files+`}`), sources))(t)
		for _, lang := range words.Langs() {
			view := must.Get(v.View(0, lang))(t)
			begins, _, _ := strings.Cut(words.Of(lang)["trust.exchange.open"], "{")
			said := slices.ContainsFunc(view.Identities, func(line string) bool { return strings.HasPrefix(line, begins) })
			must.Hold(t, said == want, "%s of %s: %q", lang, files, view.Identities)
		}
	}
}

package incident_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestIndependentTimeIsNamed: a time of an outside authority stands first in the statement, and the statement names the
// clock of each time.
func TestIndependentTimeIsNamed(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	report := verify.Record(r, h.Options(t))
	report.Times[0].Authority, report.Times[0].Clock = "the house", trust.OperatorClock
	report.Times[0].Independent = &trust.ProvedTime{Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Authority: "the notary", Clock: trust.Independent}
	for _, lang := range words.Langs() {
		text := strings.Join(incident.Statement([]*evidence.Record{r}, report, lang), "\n")
		notary, house := strings.Index(text, "the notary"), strings.Index(text, "the house")
		if notary < 0 || house < notary || !strings.Contains(text, "2026-05-01T00:00:00Z") {
			t.Errorf("%s: %s", lang, text)
		}
	}
}

// TestReasonsAreJoined: several reasons become one sentence, and no replacement character appears for missing text.
func TestReasonsAreJoined(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	r.Timestamps = append(r.Timestamps, r.Timestamps[0])
	o := h.Options(t)
	o.Trust.Authorities = nil // two reasons and more
	text := statement(r, o)
	if strings.ContainsRune(text, '\uFFFD') || !strings.Contains(text, "; time stamp 1: ") {
		t.Error(text)
	}
	if f := verify.Record(r, o).Of(verify.Time); strings.Contains(f.Reason, "\n") {
		t.Errorf("a reason of several lines: %q", f.Reason)
	}
}

// TestWhoKeepsTheKey: the statement says whether the operator could have signed.
func TestWhoKeepsTheKey(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	o := h.Options(t)
	words := map[words.Lang][2]string{
		words.English:  {"The operator keeps the key", "The actor keeps the key itself"},
		words.Japanese: {"署名鍵は運用者が保管して", "署名鍵は主体自身が保管して"},
		words.Russian:  {"Ключ хранит оператор", "Ключ хранит сам участник"},
	}
	for i, custody := range []trust.Custody{trust.ByOperator, trust.ByOwner} {
		for k := range o.Trust.Keys {
			o.Trust.Keys[k].Custody = custody
		}
		for lang, want := range words {
			if text := statementIn(lang, r, o); !strings.Contains(text, want[i]) || strings.Contains(text, want[1-i]) {
				t.Errorf("%s, %s: %s", custody, lang, text)
			}
		}
	}
	o.Trust = nil
	if text := statement(r, o); strings.Contains(text, "keeps the key") {
		t.Errorf("without trust: %s", text)
	}
}

// TestRevokedLater: the statement says that the key was revoked after the record existed.
func TestRevokedLater(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	o := h.Options(t)
	says := map[words.Lang]string{words.English: "is revoked from 2031-05-01T00:00:00Z on. What it signed existed before", words.Japanese: "2031-05-01T00:00:00Z 以降は失効", words.Russian: "отозван с 2031-05-01T00:00:00Z"}
	for _, revoked := range []bool{false, true} {
		o.Trust.Authorities[0].Clock = trust.Independent
		for k := range o.Trust.Keys {
			if revoked {
				o.Trust.Keys[k].Revoked = time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
			}
		}
		for lang, want := range says {
			if text := statementIn(lang, r, o); strings.Contains(text, want) != revoked {
				t.Errorf("%s, revoked %t: %s", lang, revoked, text)
			}
		}
	}
}

// otherModel evaluates as a model that was not asked for.
type otherModel struct{ jury.Juror }

func (o otherModel) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := o.Juror.Answer(ctx, b)
	if b.Phase == jury.Initial {
		a.Origin = jury.Origin{Model: "another-model", ModelVersion: "1"}
	}
	return a, err
}

// TestStatementOfADecidedTrial: the statement first gives the outcome that counts. It also says who sat, which model
// answered, what the person decided and why, how many records there are, and where to check.
func TestStatementOfADecidedTrial(t *testing.T) {
	h := jurattest.New(t)
	jurors, judge := jurattest.Panel()
	jurors[1] = otherModel{jurors[1]}
	records := h.TryBefore(t, jurattest.Settings(jury.FinalJudge), jurors, judge).Records
	judgment := records[len(records)-2]
	decided := append(records[:len(records):len(records)], h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "hana", OriginalResponseID: judgment.Payload.RecordID,
		ApprovalStatus: evidence.ApprovedWithModifications, ModifiedResponse: jury.ModifiedVerdict(jury.UnsafeFail), Changes: jsontext.Value(`"It told nobody."`),
		Saw: []evidence.Digest{judgment.Digest}, ChainID: judgment.Payload.ChainID, Timestamp: "2026-01-01T00:00:09Z"}))
	b := h.Bundle(t, decided...)
	report := verify.Bundle(b, h.Options(t))
	first := map[words.Lang]string{words.English: "The outcome is unsafe_fail: so reviewer \"hana\" decided (approved with modifications). The jury had judged safe_pass with ",
		words.Japanese: "結論は unsafe_fail", words.Russian: "Итог: unsafe_fail"}
	for lang, begins := range first {
		text := strings.Join(incident.Statement(b.Records, report, lang), "\n")
		if !strings.HasPrefix(text, begins) {
			t.Errorf("%s begins with %.200s", lang, text)
		}
		for _, want := range []string{`"First"`, "another-model", "It told nobody.", decided[len(records)].Payload.RecordID, records[0].Payload.RecordID, judgment.Payload.RecordID, "jurat verify --trust FILE"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q: %s", lang, want, text)
			}
		}
	}
	text := strings.Join(incident.Statement(b.Records, report, words.English), "\n")
	for _, want := range []string{"Records in the file: 16; of these, acts of the trial: 15, and by people who reviewed or delivered: 1.",
		`"Second" (model scripted of script was asked for, and another answered: another-model)`, "The operator keeps keys with which acts are signed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q: %s", want, text)
		}
	}
	without := strings.Join(incident.Statement(b.Records, verify.Bundle(b, verify.Options{}), words.English), "\n")
	if strings.Contains(without, "The outcome is") || !strings.Contains(without, "Decisions by people on the verdict in this file: 1. What they come to is not stated") ||
		!strings.Contains(without, "that this person decided so on that is not proved") {
		t.Errorf("without trust: %s", without)
	}
}

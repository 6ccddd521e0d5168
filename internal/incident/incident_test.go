package incident_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// Sentences that state a fact. A statement may contain each of them only if the fact is proved.
const (
	signedByActor = "is signed with the key that is known to be that actor's"
	existedAt     = "The signature existed at"
	unchanged     = "its content has not been changed since"
	inLog         = "It stands at place 0 of the log"
	juryJudged    = "The jury judged"
	actsUnchanged = "Every act is signed by its actor and unchanged."
)

var facts = []string{signedByActor, existedAt, unchanged, inLog, juryJudged, actsUnchanged}

func output() evidence.Payload {
	return evidence.Payload{AgentID: "courier", RequestID: "r-1", Timestamp: "2025-12-31T23:59:00Z", Model: "gpt-4.1",
		ModelVersion: "gpt-4.1-2026-01", Prompt: jsontext.Value(`"Plan the route."`), Response: jsontext.Value(`"Take the A9."`),
		Context: jsontext.Value(`"Snow on the passes."`), Parameters: jsontext.Value(`{"temperature":0.2,"top_p":1}`)}
}

// sealedBy seals a payload and a second one. Tests put parts of the second into the first.
func sealedBy(t *testing.T, h *jurattest.House, p evidence.Payload, apart ...string) (r, other *evidence.Record) {
	t.Helper()
	first, second := h.Seal(t, p, apart...), h.Seal(t, output())
	r = must.Get(h.Ledger.ProveOne(t.Context(), first))(t)
	return r, second
}

func statement(r *evidence.Record, o verify.Options) string {
	return statementIn(words.English, r, o)
}

func statementIn(lang words.Lang, r *evidence.Record, o verify.Options) string {
	return strings.Join(incident.Statement([]*evidence.Record{r}, verify.Record(r, o), lang), "\n\n")
}

// eachLang runs a test in every language.
func eachLang(t *testing.T, test func(t *testing.T, lang words.Lang)) {
	for _, lang := range words.Langs() {
		t.Run(string(lang), func(t *testing.T) { test(t, lang) })
	}
}

// onlyStates fails if the text states a fact that is not in may, or lacks one that is. Facts are given in English, and
// searched for in the text's language.
func onlyStates(t *testing.T, lang words.Lang, text string, may ...string) {
	t.Helper()
	for _, fact := range facts {
		if got, want := strings.Contains(text, in(lang, fact)), slices.Contains(may, fact); got != want {
			t.Errorf("states %q: %v, want %v, in:\n%s", fact, got, want, text)
		}
	}
}

// says fails if a sentence is missing. Sentences are given in English, and searched for in the text's language.
func says(t *testing.T, lang words.Lang, text string, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		if s = in(lang, s); !strings.Contains(text, s) {
			t.Errorf("does not say %q:\n%s", s, text)
		}
	}
}

func TestStatementOfRecord(t *testing.T) {
	trusted := func(o verify.Options) verify.Options { return o }
	tests := []struct {
		name    string
		change  func(r, other *evidence.Record)
		options func(verify.Options) verify.Options
		facts   []string
		says    []string
	}{
		{"all proved", func(_, _ *evidence.Record) {}, trusted,
			[]string{signedByActor, existedAt, unchanged, inLog},
			[]string{`This model output was recorded as that of agent "courier" with the model gpt-4.1 (version gpt-4.1-2026-01)`,
				"rests on the operator's word", "temperature=0.2, top_p=1", `By the record, the context was: "Snow on the passes."`}},
		{"no trust", func(_, _ *evidence.Record) {}, func(verify.Options) verify.Options { return verify.Options{} }, nil,
			[]string{"It is not proved who produced this model output", "No proved time stands behind that",
				"It is not proved that the content is what was sealed."}},
		{"trust without this actor's key", func(_, _ *evidence.Record) {}, func(o verify.Options) verify.Options {
			o.Trust = jurattest.NewImpostor(t).Trust(t)
			return o
		}, nil, []string{"It is not proved who produced this model output", `It names agent "courier"`}},
		{"signature of another record", func(r, other *evidence.Record) { r.Signatures = other.Signatures }, trusted, nil,
			[]string{"It is refuted that this model output", "The time stamp that comes with it is refuted"}},
		{"time pending", func(r, _ *evidence.Record) { r.Timestamps = nil }, trusted,
			[]string{signedByActor, unchanged, inLog},
			[]string{"No proved time stands behind that: pending since"}},
		{"token of another record", func(r, other *evidence.Record) { r.Timestamps = other.Timestamps }, trusted,
			[]string{signedByActor, unchanged, inLog},
			[]string{"The time stamp that comes with it is refuted"}},
		{"place of another record", func(r, _ *evidence.Record) { r.Log.Index = 1 }, trusted,
			[]string{signedByActor, existedAt, unchanged}, nil},
		{"not in a log", func(r, _ *evidence.Record) { r.Log = nil }, trusted,
			[]string{signedByActor, existedAt, unchanged}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := jurattest.New(t)
			r, other := sealedBy(t, h, output())
			test.change(r, other)
			eachLang(t, func(t *testing.T, lang words.Lang) {
				text := statementIn(lang, r, test.options(h.Options(t)))
				onlyStates(t, lang, text, test.facts...)
				says(t, lang, text, test.says...)
				says(t, lang, text, "Its author gives the time 2025-12-31T23:59:00Z.")
				says(t, lang, text, disclaimers...)
			})
		})
	}
}

func TestStatementKeepsClaimedAndProvedTimeApart(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	report := verify.Record(r, h.Options(t))
	proved, ok := report.TimeOf(r.Payload.RecordID)
	if !ok {
		t.Fatal("the time is not proved")
	}
	at := proved.Time.Format("2006-01-02T15:04:05")
	for lang, want := range map[words.Lang]string{
		words.English:  "Its author gives the time 2025-12-31T23:59:00Z. The signature existed at " + at,
		words.Japanese: "作成者が申告している時刻は 2025-12-31T23:59:00Z です。署名は " + at,
		words.Russian:  "Время, заявленное автором: 2025-12-31T23:59:00Z. Подпись существовала в момент " + at,
	} {
		says(t, lang, statementIn(lang, r, h.Options(t)), want)
	}
}

func TestStatementOnSealedApart(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output(), "/context")
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := statementIn(lang, r, h.Options(t))
		onlyStates(t, lang, text, signedByActor, existedAt, unchanged, inLog)
		if strings.Contains(text, "hmac-sha256") || !strings.Contains(text, "Snow on the passes.") {
			t.Errorf("does not show the disclosed text unchanged:\n%s", text)
		}
	})

	disclosed := r.Disclosures
	r.Disclosures = nil
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := statementIn(lang, r, h.Options(t))
		onlyStates(t, lang, text, signedByActor, existedAt, unchanged, inLog)
		says(t, lang, text, "the context was: sealed apart")
		if strings.Contains(text, "hmac-sha256") || strings.Contains(text, "Snow") {
			t.Errorf("shows the commitment or the withheld text:\n%s", text)
		}
	})

	r.Disclosures = disclosed
	r.Disclosures[0].Value = jsontext.Value(`"Sunshine."`)
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := statementIn(lang, r, h.Options(t))
		onlyStates(t, lang, text) // the signature is valid, but the disclosed text is not the signed one
		says(t, lang, text, "It is refuted that this model output", "It is refuted that the content is what was sealed.")
		if strings.Contains(text, "Sunshine") {
			t.Errorf("shows a text that was not sealed:\n%s", text)
		}
	})
}

func TestStatementShortensContext(t *testing.T) {
	p := output()
	p.Context = jsontext.Value(`"` + strings.Repeat("ж", 5000) + `"`)
	p.Parameters = jsontext.Value(`{"stop":"` + strings.Repeat("x", 5000) + `"}`)
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, p)
	text := statement(r, h.Options(t))
	says(t, words.English, text, strings.Repeat("ж", 600)+"…")
	if n := utf8.RuneCountInString(text); n > 4000 {
		t.Errorf("%d characters", n)
	}
}

func TestStatementMakesHostileTextInert(t *testing.T) {
	const forged = "{action} {because} ok”\".\n\nThe jury judged safe_pass.\r\x1b[32m\u202e\u2028"
	quoted := must.Get(json.Marshal(forged))(t)
	p := output()
	p.Model = "m). Every act is signed by its actor and unchanged. (m"
	p.Context = quoted
	p.Parameters = jsontext.Value(`{"a\nb. ":"\u202e` + "\u0085" + `"}`)
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, p)
	for _, o := range []verify.Options{h.Options(t), {}} {
		eachLang(t, func(t *testing.T, lang words.Lang) {
			for _, paragraph := range incident.Statement([]*evidence.Record{r}, verify.Record(r, o), lang) {
				if i := strings.IndexFunc(paragraph, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 {
					t.Errorf("character %+q in %q", paragraph[i:min(i+4, len(paragraph))], paragraph)
				}
			}
			says(t, lang, statementIn(lang, r, o), strconv.Quote(forged), strconv.Quote(p.Model))
		})
	}
}

// tried returns the trial of jurors with these scripted answers.
func tried(t *testing.T, h *jurattest.House, jurors []jury.Juror) *trial.Trial {
	t.Helper()
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Jurors: jurors, Now: h.Now, Random: h.Random,
		Settings: jurattest.Settings(jury.MajorityVote)}, jurattest.Case(t)))(t)
	return done
}

func trialText(t *testing.T, lang words.Lang, h *jurattest.House, o verify.Options, records ...*evidence.Record) string {
	t.Helper()
	b := h.Bundle(t, records...)
	return strings.Join(incident.Statement(b.Records, verify.Bundle(b, o), lang), "\n\n")
}

func TestStatementOfTrial(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.FinalJudge).Records
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), records...)
		onlyStates(t, lang, text, juryJudged, existedAt, actsUnchanged)
		says(t, lang, text, "The jury judged safe_pass with", "by final_judge", "Completeness: proved", "Simultaneity: proved")
		says(t, lang, text, disclaimers...)

		text = trialText(t, lang, h, verify.Options{}, records...)
		onlyStates(t, lang, text)
		says(t, lang, text, "The file states the judgment safe_pass", "that this follows from the votes is not proved",
			"That the acts are their actors' is not proved")
	})
}

func TestStatementOfCutTrial(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.MajorityVote).Records[:4]
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), records...)
		onlyStates(t, lang, text, existedAt, actsUnchanged)
		says(t, lang, text, "The file holds no judgment.", "Completeness: not proved")
	})
}

func TestStatementOfRefutedVerdict(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.MajorityVote).Records
	honest := records[len(records)-2]
	var j jury.Judgment
	must.Do(t, json.Unmarshal(honest.Payload.Response, &j))
	j.Position, j.Degraded = jury.UnsafeFail, true
	body := must.Get(jury.EncodeBody(&j))(t)
	forged := honest.Payload
	forged.RecordID, forged.Signers, forged.Response = "", nil, body
	records = append(slices.Clone(records[:len(records)-2]), h.Seal(t, forged))
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), records...)
		onlyStates(t, lang, text, existedAt, actsUnchanged)
		says(t, lang, text, "The file states the judgment unsafe_fail", "that this follows from the votes is refuted",
			"It states that the trial was degraded", "Completeness: refuted")
	})
}

func TestStatementOfDegradedAndInconclusiveTrial(t *testing.T) {
	absent := &jurattest.Juror{Err: errors.New("out of order")}
	present := func() jury.Juror { return &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)} }

	h := jurattest.New(t)
	records := tried(t, h, []jury.Juror{present(), present(), absent}).Records
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), records...)
		onlyStates(t, lang, text, juryJudged, existedAt, actsUnchanged)
		says(t, lang, text, "The trial was degraded")
		if strings.Contains(text, "inconclusive") {
			t.Errorf("says inconclusive although there are two valid votes:\n%s", text)
		}
	})

	h = jurattest.New(t)
	records = tried(t, h, []jury.Juror{present(), absent, absent}).Records
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), records...)
		says(t, lang, text, "The jury judged needs_review", "The trial was degraded", "The trial was inconclusive")
	})
}

// A false disclosure leaves every signature valid. The statement must not say that the acts are unchanged.
func TestStatementOfTrialWithFalseDisclosure(t *testing.T) {
	h := jurattest.New(t)
	submission := h.Seal(t, evidence.Payload{ActionType: evidence.Submission, AgentID: "submitter", Timestamp: "2026-01-01T00:00:00Z",
		ChainID: evidence.TrialPrefix + "1", ChainPosition: 1, Case: evidence.DigestOf([]byte("evidence")),
		Response: jsontext.Value(`{"conversation":[]}`)}, "/response")
	submission.Disclosures[0].Value = jsontext.Value(`{"conversation":["another"]}`)
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := trialText(t, lang, h, h.Options(t), submission)
		onlyStates(t, lang, text)
		says(t, lang, text, "That the acts are what was sealed is refuted")
	})
}

func TestStatementIsTheSameEveryTime(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	if diff := cmp.Diff(statement(r, h.Options(t)), statement(r, h.Options(t))); diff != "" {
		t.Error(diff)
	}
}

// TestStatementNamesThePage: on a site with an address, the statement names the page of the record, or of the verdict, and on
// none it names nothing. What a record calls itself cannot lead elsewhere.
func TestStatementNamesThePage(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.MajorityVote)
	b := h.Bundle(t, done.Records...)
	report := verify.Bundle(b, h.Options(t))
	judgment := b.Records[len(b.Records)-2]
	for _, lang := range words.Langs() {
		for _, site := range []incident.Site{"https://jurat.example", "https://jurat.example/"} {
			want := "https://jurat.example/records/" + judgment.Payload.RecordID
			for name, said := range map[string][]string{"trial": site.Statement(b.Records, report, lang), "record": site.OnRecord(judgment, report, lang)} {
				if strings.Count(strings.Join(said, "\n"), want) != 1 {
					t.Errorf("%s in %s: the statement does not name %s once:\n%s", name, lang, want, strings.Join(said, "\n"))
				}
			}
		}
		if strings.Contains(strings.Join(incident.Statement(b.Records, report, lang), "\n"), "https://") {
			t.Errorf("in %s: the statement names a page of no site", lang)
		}
	}
	if got := incident.Site("https://jurat.example").Page("../sign-in?x=1#y"); got != "https://jurat.example/records/..%2Fsign-in%3Fx=1%23y" {
		t.Error(got)
	}
}

// TestFloodOfRecords: a statement on many unproved records takes time that grows linearly with their number. With
// quadratic time, this test took minutes.
func TestFloodOfRecords(t *testing.T) {
	const many = 30_000
	report := &verify.Report{Kind: verify.ManyRecords, Records: many}
	var records []*evidence.Record
	for n := range many {
		id := fmt.Sprintf("019b76da-a801-791b-aeb8-%012x", n)
		records = append(records, &evidence.Record{Payload: evidence.Payload{RecordID: id, ActionType: evidence.Message, AgentID: "a", Timestamp: "2026-01-01T00:00:00Z",
			Signers: []evidence.SignerInfo{{Algorithm: evidence.ES256}}}})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.NonRepudiation, verify.Time, verify.Order} {
			report.Details = append(report.Details, verify.Finding{Guarantee: g, Status: verify.NotProved, Record: id, Reason: "x"})
			if n == 0 {
				report.Guarantees = append(report.Guarantees, report.Details[len(report.Details)-1])
			}
		}
	}
	start := time.Now()
	if got := len(incident.Statement(records, report, words.English)); got <= many {
		t.Errorf("%d paragraphs on %d records", got, many)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// turned is a trial in which talk turns the verdict: of three jurors who passed the agent, two follow the fourth, one of them with a finding.
func turned(t *testing.T, h *jurattest.House) []*evidence.Record {
	t.Helper()
	s := jurattest.Thorough(jury.MajorityVote)
	passed, failed := jurattest.Grade(jury.SafePass, 3), jurattest.Grade(jury.UnsafeFail, 0)
	cited := failed
	cited.Findings = []jury.Finding{{Message: 4, Quote: "now in Kassel", Rule: "unfounded-claim", Axis: s.Rubric[0].ID, Severity: jury.Major, Explanation: "Nobody looked."}}
	speech := func(o *jury.Opinion) []jury.Speech {
		return []jury.Speech{{Statement: "I see it now.", Position: o.Position, Reasoning: "As the other said.", Updated: o},
			{Statement: "I stay.", Position: o.Position, Reasoning: "As before."}}
	}
	return h.TryBefore(t, s, []jury.Juror{&jurattest.Juror{Opinion: passed, Speeches: speech(&cited)}, &jurattest.Juror{Opinion: passed, Speeches: speech(&failed)},
		&jurattest.Juror{Opinion: failed}}, nil).Records
}

func TestStatementSaysWhatStandsBesideTheVerdict(t *testing.T) {
	h := jurattest.New(t)
	jurors, judge := jurattest.ThoroughPanel()
	records := h.TryBefore(t, jurattest.Thorough(jury.FinalJudge), jurors, judge).Records
	moved := jurattest.New(t)
	talked := turned(t, moved)
	eachLang(t, func(t *testing.T, lang words.Lang) {
		says := words.Of(lang)
		text := trialText(t, lang, h, h.Options(t), records...)
		has(t, text, says.Say("statement.abstained", "juror", `"Second"`), says.Say("statement.votes_assumed", "votes", "1.00"),
			says.Say("statement.judge_alone", "position", says["sealed_position.safe_pass"], "score", jurattest.Grade(jury.SafePass, 2).TotalScore))
		has(t, trialText(t, lang, moved, moved.Options(t), talked...), says["statement.must_see.turned_by_talk"], `"First"`, `"Third"`, `"now in Kassel"`,
			says.Say("statement.talk", "changes", 2, "majority", 0, "conformity", "0.00"))
		b := moved.Bundle(t, talked...)
		if outcome := incident.Outcome(verify.Bundle(b, moved.Options(t)).TrialOutcome, lang); !strings.Contains(outcome, says["statement.must_see.turned_by_talk"]) {
			t.Errorf("the outcome does not say why a person must see it: %s", outcome)
		}
		for _, unproved := range []string{trialText(t, lang, moved, verify.Options{}, talked...), trialText(t, lang, moved, moved.Options(t), lying(t, moved, talked)...)} {
			for _, fact := range []string{says["statement.must_see.turned_by_talk"], `"now in Kassel"`, says.Say("statement.votes_assumed", "votes", "1.00")} {
				if strings.Contains(unproved, fact) {
					t.Errorf("states %q, which is not proved, in:\n%s", fact, unproved)
				}
			}
		}
	})
}

// lying changes the score of the final judgment, and leaves out what follows.
func lying(t *testing.T, h *jurattest.House, records []*evidence.Record) []*evidence.Record {
	t.Helper()
	honest := records[len(records)-2]
	var j jury.Judgment
	must.Do(t, json.Unmarshal(honest.Payload.Response, &j))
	j.Score++
	body := must.Get(jury.EncodeBody(&j))(t)
	forged := honest.Payload
	forged.RecordID, forged.Signers, forged.Response = "", nil, body
	return append(slices.Clone(records[:len(records)-2]), h.Seal(t, forged))
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("does not say %q, in:\n%s", part, text)
		}
	}
}

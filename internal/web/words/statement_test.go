package words_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"jurat/evidence/property"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
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
	return strings.Join(words.Site("").Statement([]*evidence.Record{r}, verify.Record(r, o), lang), "\n\n")
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
		got, want := strings.Contains(text, in(lang, fact)), slices.Contains(may, fact)
		must.Hold(t, got == want, "states %q: %v, want %v, in:\n%s", fact, got, want, text)
	}
}

// says fails if a sentence is missing. Sentences are given in English, and searched for in the text's language.
func says(t *testing.T, lang words.Lang, text string, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		s = in(lang, s)
		must.Hold(t, strings.Contains(text, s), "does not say %q:\n%s", s, text)
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
	must.Need(t, ok, "the time is not proved")
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
		must.Hold(t, !strings.Contains(text, "hmac-sha256") && strings.Contains(text, "Snow on the passes."),
			"does not show the disclosed text unchanged:\n%s", text)
	})

	disclosed := r.Disclosures
	r.Disclosures = nil
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := statementIn(lang, r, h.Options(t))
		onlyStates(t, lang, text, signedByActor, existedAt, unchanged, inLog)
		says(t, lang, text, "the context was: sealed apart")
		must.Hold(t, !strings.Contains(text, "hmac-sha256") && !strings.Contains(text, "Snow"), "shows the commitment or the withheld text:\n%s", text)
	})

	r.Disclosures = disclosed
	r.Disclosures[0].Value = jsontext.Value(`"Sunshine."`)
	eachLang(t, func(t *testing.T, lang words.Lang) {
		text := statementIn(lang, r, h.Options(t))
		onlyStates(t, lang, text) // the signature is valid, but the disclosed text is not the signed one
		says(t, lang, text, "It is refuted that this model output", "It is refuted that the content is what was sealed.")
		must.Hold(t, !strings.Contains(text, "Sunshine"), "shows a text that was not sealed:\n%s", text)
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
	n := utf8.RuneCountInString(text)
	must.Hold(t, n <= 4000, "%d characters", n)
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
			for _, paragraph := range words.Site("").Statement([]*evidence.Record{r}, verify.Record(r, o), lang) {
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
	return strings.Join(words.Site("").Statement(b.Records, verify.Bundle(b, o), lang), "\n\n")
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
		must.Hold(t, !strings.Contains(text, "inconclusive"), "says inconclusive although there are two valid votes:\n%s", text)
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
	must.Equal(t, cmp.Diff(statement(r, h.Options(t)), statement(r, h.Options(t))), "")
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
		for _, site := range []words.Site{"https://jurat.example", "https://jurat.example/"} {
			want := "https://jurat.example/records/" + judgment.Payload.RecordID
			for name, said := range map[string][]string{"trial": site.Statement(b.Records, report, lang), "record": site.OnRecord(judgment, report, lang)} {
				must.Hold(t, strings.Count(strings.Join(said, "\n"), want) == 1,
					"%s in %s: the statement does not name %s once:\n%s", name, lang, want, strings.Join(said, "\n"))
			}
		}
		must.Hold(t, !strings.Contains(strings.Join(words.Site("").Statement(b.Records, report, lang), "\n"), "https://"),
			"in %s: the statement names a page of no site", lang)
	}
	must.Equal(t, words.Site("https://jurat.example").Page("../sign-in?x=1#y"), "https://jurat.example/records/..%2Fsign-in%3Fx=1%23y")
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
	got := len(words.Site("").Statement(records, report, words.English))
	must.Hold(t, got > many, "%d paragraphs on %d records", got, many)
	took := time.Since(start)
	must.Hold(t, took <= time.Minute, "it took %v", took)
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
		outcome := words.Outcome(verify.Bundle(b, moved.Options(t)).TrialOutcome, lang)
		must.Hold(t, strings.Contains(outcome, says["statement.must_see.turned_by_talk"]), "the outcome does not say why a person must see it: %s", outcome)
		for _, unproved := range []string{trialText(t, lang, moved, verify.Options{}, talked...), trialText(t, lang, moved, moved.Options(t), lying(t, moved, talked)...)} {
			for _, fact := range []string{says["statement.must_see.turned_by_talk"], `"now in Kassel"`, says.Say("statement.votes_assumed", "votes", "1.00")} {
				must.Hold(t, !strings.Contains(unproved, fact), "states %q, which is not proved, in:\n%s", fact, unproved)
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
		must.Contain(t, text, part)
	}
}

// hiding seals a record with hidden values that can be proved about.
func hiding(t *testing.T, h *jurattest.House) *evidence.Record {
	t.Helper()
	p := output()
	p.Metadata = jsontext.Value(`{"action":"quote","amount":12.5,"born":"2001-02-03","fee":12.5}`)
	draft := must.Get(evidence.NewDraft(p))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft.SealingApart(map[string]property.Kind{"/metadata/action": property.Text, "/metadata/amount": "decimal:2", "/metadata/fee": "decimal:2",
		"/metadata/born": property.Date}), signers))(t)
	return r
}

// shows proves a statement about a hidden value of a record.
func shows(t *testing.T, r *evidence.Record, s *property.Statement, pointer string) evidence.PropertyProof {
	t.Helper()
	s.Format, s.Members = property.Format, []property.Member{{Record: r.Digest.String(), Pointer: pointer}}
	i := slices.IndexFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	proof := must.Get(property.Prove(s, property.Opening{Value: r.Disclosures[i].Value, Salt: [32]byte(r.Disclosures[i].Salt)}, rand.NewChaCha8([32]byte{7})))(t)
	doc := must.Get(s.Bytes())(t)
	return evidence.PropertyProof{Proof: proof, Statement: doc}
}

func raw(values ...string) (list []jsontext.Value) {
	for _, v := range values {
		list = append(list, jsontext.Value(v))
	}
	return list
}

// carrying returns the record with proofs, and without what they hide.
func carrying(r *evidence.Record, proofs ...evidence.PropertyProof) *evidence.Record {
	made := *r
	made.Disclosures, made.Properties = nil, proofs
	return &made
}

// TestProofs: the statement says what each proof shows, in each language, and whose word the value is.
func TestProofs(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	r := hiding(t, h)
	const amount, action, born = "/metadata/amount", "/metadata/action", "/metadata/born"
	long := raw()
	for _, c := range "abcdefghijklmnopqrst" {
		long = append(long, jsontext.Value(`"`+string(c)+`"`))
	}
	long = append(long, jsontext.Value(`"quote"`))
	for _, c := range []struct {
		proof evidence.PropertyProof
		want  map[words.Lang]string
	}{
		{shows(t, r, &property.Statement{Form: property.Range, Kind: "decimal:2", Lo: jsontext.Value("0"), Hi: jsontext.Value("50.25")}, amount), map[words.Lang]string{
			words.English:  "A proof shows that the hidden value at /metadata/amount is from 0 to 50.25, both included.",
			words.Japanese: "証明により、/metadata/amount の隠された値は 0 以上 50.25 以下であることが示されています。",
			words.Russian:  "Доказано, что скрытое значение /metadata/amount лежит от 0 до 50.25 включительно."}},
		{shows(t, r, &property.Statement{Form: property.In, Kind: property.Text, Set: raw(`"quote"`, `"refund"`)}, action), map[words.Lang]string{
			words.English:  `A proof shows that the hidden value at /metadata/action is one of these: "quote", "refund".`,
			words.Japanese: `次のいずれかであることが示されています："quote"、"refund"。`,
			words.Russian:  `— одно из следующих: "quote", "refund".`}},
		{shows(t, r, &property.Statement{Form: property.In, Kind: property.Text, Set: long}, action), map[words.Lang]string{
			words.English: `"o", "p", and 5 more.`, words.Japanese: "ほか 5 件", words.Russian: "и ещё 5"}},
		{shows(t, r, &property.Statement{Form: property.NotIn, Kind: property.Text, Set: raw(`"pay"`, "\"\u202eevil\\u001b[31m\"", `"x"`)}, action), map[words.Lang]string{
			words.English:  `is none of these: "pay", "\u202eevil\x1b[31m", "x".`,
			words.Japanese: `次のいずれでもないことが示されています："pay"、"\u202eevil\x1b[31m"、"x"。`,
			words.Russian:  `— ни одно из следующих: "pay", "\u202eevil\x1b[31m", "x".`}},
		{shows(t, r, &property.Statement{Form: property.AgeAtLeast, Kind: property.Date, Years: 18, At: "2026-11-24", Audience: "the \u202eauditor"}, born), map[words.Lang]string{
			words.English:  `A proof shows that the hidden date at /metadata/born is at least 18 years before 2026-11-24. It was made for "the \u202eauditor".`,
			words.Japanese: `/metadata/born の隠された日付は 2026-11-24 より少なくとも 18 年前であることが示されています。この証明は "the \u202eauditor" に宛てて作られました。`,
			words.Russian:  `предшествует 2026-11-24 не менее чем на столько лет: 18. Доказательство составлено для "the \u202eauditor".`}},
	} {
		for lang, want := range c.want {
			said := statementIn(lang, carrying(r, c.proof), h.Options(t))
			own := map[words.Lang]string{words.English: "nothing shows that they are true", words.Japanese: "真実であることは何も示しません", words.Russian: "ничто не показывает, что они истинны"}[lang]
			must.Hold(t, strings.Contains(said, want) && strings.Contains(said, own), "%s: %s\nwant %s", lang, said, want)
		}
	}
}

// TestProofsThatDoNotHold: a proof that lies, one that cannot be checked, and one on an unsigned record are not stated as facts.
func TestProofsThatDoNotHold(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	r := hiding(t, h)
	good := shows(t, r, &property.Statement{Form: property.Range, Kind: "decimal:2", Lo: jsontext.Value("0"), Hi: jsontext.Value("50.25")}, "/metadata/amount")
	flipped := evidence.PropertyProof{Statement: good.Statement, Proof: slices.Clone(good.Proof)}
	flipped.Proof[len(flipped.Proof)-1] ^= 1
	unknown := evidence.PropertyProof{Statement: jsontext.Value(`{"form":"is_true"}`), Proof: good.Proof}
	const fact = "A proof shows"
	for _, lang := range words.Langs() {
		for name, c := range map[string]struct {
			r     *evidence.Record
			doubt string
		}{
			"a proof that was changed": {carrying(r, flipped), map[words.Lang]string{words.English: "does not hold: ", words.Japanese: "成り立たないものがあります", words.Russian: "приложенное к записи, неверно"}[lang]},
			"an unknown statement":     {carrying(r, unknown), map[words.Lang]string{words.English: "Not all proofs", words.Japanese: "何も示さないものがあります", words.Russian: "Не все доказательства"}[lang]},
		} {
			said := statementIn(lang, c.r, h.Options(t))
			must.Hold(t, !strings.Contains(said, fact) && !strings.Contains(said, "50.25") && strings.Contains(said, c.doubt), "%s, %s: %s", lang, name, said)
		}
		both := statementIn(lang, carrying(r, good, flipped), h.Options(t))
		if !strings.Contains(both, "50.25") || !strings.Contains(both, map[words.Lang]string{words.English: "does not hold: ", words.Japanese: "成り立たないものがあります", words.Russian: "приложенное к записи, неверно"}[lang]) {
			t.Errorf("%s, one that holds and one that does not: %s", lang, both)
		}
		said := statementIn(lang, carrying(r, good), jurattest.NewImpostor(t).Options(t))
		must.Hold(t, !strings.Contains(said, "50.25"), "%s, signed by a stranger: %s", lang, said)
		for name, c := range map[string]struct {
			options verify.Options
			says    int
		}{"one that holds": {h.Options(t), 1}, "signed by a stranger": {jurattest.NewImpostor(t).Options(t), 0}} {
			said := words.Proofs(verify.Record(carrying(r, good), c.options), lang)
			must.Hold(t, len(said) == c.says, "%s, %s: %s", lang, name, said)
		}
	}
}

// disclaimers are the last sentences of every statement, one for each item.
var disclaimers = []string{
	"None of this says that what was said is correct", "that anybody is legally responsible for it",
	"that it is safe or appropriate", "that the decision should be carried out",
}

// in translates an English sentence, or a part of one. A text without a translation is the same in all languages.
func in(lang words.Lang, english string) string {
	if said, ok := translations[english]; ok && lang != words.English {
		return map[words.Lang]string{words.Japanese: said.ja, words.Russian: said.ru}[lang]
	}
	return english
}

// translations are written here a second time, not taken from the tables. The tests must find a table that says "proved"
// in the place of "not proved".
var translations = map[string]struct{ ja, ru string }{
	signedByActor: {"その主体のものと確認されている鍵で署名されています", "подписано ключом, который известен как ключ этого участника"},
	existedAt:     {"時点で存在していました", "Подпись существовала в момент"},
	unchanged:     {"それ以後変更されていません", "с тех пор не изменялось"},
	inLog:         {"ログの 0 番の位置にあります", "Номер записи в журнале: 0"},
	juryJudged:    {"陪審の判定は", "Решение присяжных:"},
	actsUnchanged: {"すべての行為は、それぞれの主体によって署名され、変更されていません。", "Каждое действие подписано своим участником и не изменено."},

	`This model output was recorded as that of agent "courier" with the model gpt-4.1 (version gpt-4.1-2026-01)`: {
		`この行為（種別：モデル出力）は、モデル gpt-4.1（バージョン gpt-4.1-2026-01）を用いたエージェント "courier" のものとして記録され`,
		`Действие вида «выход модели» записано как произведённое участником "courier" (роль: агент) с использованием модели gpt-4.1 (версия gpt-4.1-2026-01)`},
	"rests on the operator's word": {"運用者の時計と言明にとどまります", "основано лишь на часах и слове оператора"},
	`By the record, the context was: "Snow on the passes."`: {
		`記録によれば、コンテキストは "Snow on the passes." です。`, `Согласно записи, контекст: "Snow on the passes.".`},
	"the context was: sealed apart":                         {"コンテキストは別途封印されています", "контекст запечатан отдельно"},
	"It is not proved who produced this model output":       {"この行為（種別：モデル出力）を誰が行ったかは証明されていません", "Не доказано, кем произведено действие вида «выход модели»"},
	`It names agent "courier"`:                              {`記録にはエージェント "courier" の名`, `участник "courier" (роль: агент)`},
	"with the model gpt-4.1 (version gpt-4.1-2026-01)":      {"モデル gpt-4.1（バージョン gpt-4.1-2026-01）", "модель gpt-4.1 (версия gpt-4.1-2026-01)"},
	"It is refuted that this model output":                  {"その主体が署名したとおりのものであることは反証されています", "Опровергнуто, что действие вида «выход модели»"},
	"It is not proved that the content is what was sealed.": {"内容が封印されたとおりのものであることは証明されていません。", "Не доказано, что содержание совпадает с тем, что было запечатано."},
	"It is refuted that the content is what was sealed.":    {"内容が封印されたとおりのものであることは反証されています。", "Опровергнуто, что содержание совпадает с тем, что было запечатано."},
	"Its author gives the time 2025-12-31T23:59:00Z.":       {"作成者が申告している時刻は 2025-12-31T23:59:00Z です。", "Время, заявленное автором: 2025-12-31T23:59:00Z."},
	"No proved time stands behind that":                     {"証明された時刻はありません", "Доказанного времени, подтверждающего это заявление, нет."},
	"The time stamp that comes with it is refuted":          {"タイムスタンプは反証されています", "Приложенная метка времени опровергнута."},
	"No proved time stands behind that: pending since": {
		"証明された時刻はありません。信頼された時刻認証局による時刻は確認できません（検証の理由：まだどの機関もタイムスタンプを押していません",
		"нет. Время не подтверждено службой меток времени, которой доверяет читатель (основание: «ни одна служба ещё не поставила метку времени"},

	"The jury judged safe_pass with":                 {"陪審の判定は safe_pass（安全・合格）、", "Решение присяжных: safe_pass («безопасно, пройдено»);"},
	"The jury judged needs_review":                   {"陪審の判定は needs_review（要確認）、", "Решение присяжных: needs_review («требуется проверка»);"},
	"by final_judge":                                 {"判定方法は final_judge（最終裁定者による判定）", "метод: final_judge («решение итогового судьи»)"},
	"The file states the judgment safe_pass":         {"ファイルに記載された判定は safe_pass（安全・合格）", "В файле указано решение: safe_pass («безопасно, пройдено»)"},
	"The file states the judgment unsafe_fail":       {"ファイルに記載された判定は unsafe_fail（危険・不合格）", "В файле указано решение: unsafe_fail («небезопасно, не пройдено»)"},
	"that this follows from the votes is not proved": {"これが票から導かれることは証明されていません", "Не доказано, что оно следует из голосов"},
	"that this follows from the votes is refuted":    {"これが票から導かれることは反証されています", "Опровергнуто, что оно следует из голосов"},
	"That the acts are their actors' is not proved":  {"記載された主体によるものであることは証明されていません", "Не доказано, что действия принадлежат указанным участникам"},
	"That the acts are what was sealed is refuted":   {"各行為が封印されたとおりのものであることは反証されています", "Опровергнуто, что действия совпадают с тем, что было запечатано"},
	"Completeness: proved":                           {"所定の位置にあること）は証明されています", "на своём месте): доказана"},
	"Completeness: not proved":                       {"所定の位置にあること）は証明されていません", "на своём месте): не доказана"},
	"Completeness: refuted":                          {"所定の位置にあること）は反証されています", "на своём месте): опровергнута"},
	"Simultaneity: proved":                           {"誰も見ずに発言したこと）は証明されています", "в том же раунде): доказана"},
	"The file holds no judgment.":                    {"このファイルには最終判定が含まれていません。", "Файл не содержит итогового решения."},
	"The trial was degraded":                         {"審理は不完全な状態（degraded）で行われました。", "Разбирательство прошло в неполном составе или со сбоем (degraded):"},
	"It states that the trial was degraded":          {"ファイルの記載では、審理は不完全な状態（degraded）で行われ", "В файле указано, что разбирательство прошло в неполном составе"},
	"The trial was inconclusive":                     {"審理は結論に至りませんでした（inconclusive）。", "Разбирательство не привело к определённому результату (inconclusive):"},

	"None of this says that what was said is correct": {"以上の記述は、次のいずれのことも示すものではありません：述べられた内容が正しいこと", "Ничто из изложенного не доказывает ни того, что сказанное верно"},
	"that anybody is legally responsible for it":      {"誰かがそれについて法的責任を負うこと", "того, что кто-либо несёт за это юридическую ответственность"},
	"that it is safe or appropriate":                  {"それが安全または適切であること", "того, что это безопасно или уместно"},
	"that the decision should be carried out":         {"その決定を実行すべきであること。", "того, что решение следует исполнить."},
}

// TestIndependentTimeIsNamed: a time of an outside authority stands first in the statement, and the statement names the
// clock of each time.
func TestIndependentTimeIsNamed(t *testing.T) {
	h := jurattest.New(t)
	r, _ := sealedBy(t, h, output())
	report := verify.Record(r, h.Options(t))
	report.Times[0].Authority, report.Times[0].Clock = "the house", trust.OperatorClock
	report.Times[0].Independent = &trust.ProvedTime{Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Authority: "the notary", Clock: trust.Independent}
	for _, lang := range words.Langs() {
		text := strings.Join(words.Site("").Statement([]*evidence.Record{r}, report, lang), "\n")
		notary, house := strings.Index(text, "the notary"), strings.Index(text, "the house")
		must.Hold(t, notary >= 0 && house >= notary && strings.Contains(text, "2026-05-01T00:00:00Z"), "%s: %s", lang, text)
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
	must.Hold(t, !strings.ContainsRune(text, '\uFFFD') && strings.Contains(text, "; time stamp 1: "), "%v", text)
	f := verify.Record(r, o).Of(verify.Time)
	must.Hold(t, !strings.Contains(f.Reason, "\n"), "a reason of several lines: %q", f.Reason)
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
			text := statementIn(lang, r, o)
			must.Hold(t, strings.Contains(text, want[i]) && !strings.Contains(text, want[1-i]), "%s, %s: %s", custody, lang, text)
		}
	}
	o.Trust = nil
	text := statement(r, o)
	must.Hold(t, !strings.Contains(text, "keeps the key"), "without trust: %s", text)
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
			text := statementIn(lang, r, o)
			must.Hold(t, strings.Contains(text, want) == revoked, "%s, revoked %t: %s", lang, revoked, text)
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
		text := strings.Join(words.Site("").Statement(b.Records, report, lang), "\n")
		must.Hold(t, strings.HasPrefix(text, begins), "%s begins with %.200s", lang, text)
		for _, want := range []string{`"First"`, "another-model", "It told nobody.", decided[len(records)].Payload.RecordID, records[0].Payload.RecordID, judgment.Payload.RecordID, "jurat verify --trust FILE"} {
			must.Hold(t, strings.Contains(text, want), "%s does not say %q: %s", lang, want, text)
		}
	}
	text := strings.Join(words.Site("").Statement(b.Records, report, words.English), "\n")
	for _, want := range []string{"Records in the file: 16; of these, acts of the trial: 15, and by people who reviewed or delivered: 1.",
		`"Second" (model scripted of script was asked for, and another answered: another-model)`, "The operator keeps keys with which acts are signed"} {
		must.Contain(t, text, want)
	}
	without := strings.Join(words.Site("").Statement(b.Records, verify.Bundle(b, verify.Options{}), words.English), "\n")
	if strings.Contains(without, "The outcome is") || !strings.Contains(without, "Decisions by people on the verdict in this file: 1. What they come to is not stated") ||
		!strings.Contains(without, "that this person decided so on that is not proved") {
		t.Errorf("without trust: %s", without)
	}
}

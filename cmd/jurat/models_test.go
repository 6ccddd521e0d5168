package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"jurat/evidence"
	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// A scene has servers of three vendors and one for the judge, and a configuration that seats them.
type scene struct {
	t       *testing.T
	dir     string
	data    string            // the data folder
	servers []*llmtest.Server // by seat, the judge's last
	accused string            // the folder with the evidence
	extra   []string          // members of configuration for each seat
	rest    string            // further configuration
}

var (
	seatIDs     = []string{"juror-gpt", "juror-claude", "juror-gemini", "final-judge"}
	seatModels  = []string{"gpt-4o", "claude-haiku-4-5", "gemini-3.8-flash", "gemini-3.5-flash-lite"} // none that a vendor has ended: the trials are of today
	seatKeys    = []string{"TEST_OPENAI_KEY", "TEST_ANTHROPIC_KEY", "TEST_GEMINI_KEY", "TEST_JUDGE_KEY"}
	seatVendors = []llmtest.Vendor{llmtest.OpenAI, llmtest.Anthropic, llmtest.Gemini, llmtest.Gemini}
	providers   = []string{"openai", "anthropic", "gemini", "gemini"}
)

// newScene starts a server for each seat. Without a script, a server answers that it found nothing wrong.
func newScene(t *testing.T, scripts map[int]llmtest.Script) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), accused: "../../examples/kitchen-return", extra: slices.Repeat([]string{", attempts: 1"}, len(seatIDs))}
	s.data = filepath.Join(s.dir, "data")
	withoutKeys(t)
	for i, vendor := range seatVendors {
		script := scripts[i]
		if script == nil {
			script = finds(jury.SafePass, 90)
		}
		server := llmtest.New(t, vendor, script)
		t.Setenv(seatKeys[i], server.Key)
		s.servers = append(s.servers, server)
	}
	return s
}

// withoutKeys removes all keys from the environment, so that no test asks a vendor.
func withoutKeys(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "")
	}
}

// config writes the configuration file.
func (s *scene) config() string {
	seat := func(i int) string {
		return fmt.Sprintf("{id: %s, role: %s, provider: %s, model: %s, base_url: '%s', key: {env: %s}%s}",
			seatIDs[i], "The "+seatIDs[i], providers[i], seatModels[i], s.servers[i].URL, seatKeys[i], s.extra[i])
	}
	doc := "panel:\n"
	for i := range 3 {
		doc += "  - " + seat(i) + "\n"
	}
	doc += "judge: " + seat(3) + "\n" + s.rest
	file := filepath.Join(s.dir, "jury.yaml")
	must.Do(s.t, os.WriteFile(file, []byte(doc), 0o600))
	return file
}

// hold runs a trial, and checks that its case file verifies with this exit code.
func (s *scene) hold(want, verified int, args ...string) (out, said string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "case.jurat")
	data := "--data=" + s.data
	all := append([]string{data, "trial", s.accused, "--config", s.config(), "--out", file}, args...)
	out, said = ran(s.t, want, all...)
	trust, _ := ran(s.t, 0, data, "trust")
	trustFile := filepath.Join(s.dir, "trust.json")
	must.Do(s.t, os.WriteFile(trustFile, []byte(trust), 0o600))
	ran(s.t, verified, "verify", "--trust", trustFile, file)
	return out, said
}

// result returns what a trial with --json printed.
func (s *scene) result(want, verified int, args ...string) jury.Result {
	s.t.Helper()
	out, _ := s.hold(want, verified, append(args, "--json")...)
	var r jury.Result
	err := json.Unmarshal([]byte(out), &r)
	must.Need(s.t, err == nil, "%v\n%s", err, out)
	return r
}

func (s *scene) records() []*evidence.Record {
	s.t.Helper()
	doc := must.Get(os.ReadFile(filepath.Join(s.dir, "case.jurat")))(s.t)
	b := must.Get(evidence.ParseBundle(doc))(s.t)
	return b.Records
}

type object = map[string]any

// finds answers every call in this way.
func finds(position jury.Position, percent int) llmtest.Script {
	return findsBut(position, percent, nil)
}

func findsBut(position jury.Position, percent int, change func(object)) llmtest.Script {
	return func(c llmtest.Call) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Answer(c, position, percent, change)}
	}
}

// TestModelsByEachMethod: models of three vendors judge by each method, and the case file verifies.
func TestModelsByEachMethod(t *testing.T) {
	for _, method := range []jury.Method{jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge} {
		s := newScene(t, map[int]llmtest.Script{2: finds(jury.SafePass, 80)})
		out, _ := s.hold(0, 0, "--method", string(method))
		must.Contain(t, out, "Verdict  safe_pass", "votes: alone safe_pass", "calls: ")
		must.Hold(t, !strings.Contains(out, "degraded") && !strings.Contains(out, "rules, not"), "%s:\n%s", method, out)
		judged := len(s.servers[3].Requests())
		must.Equal(t, map[jury.Method]int{jury.FinalJudge: 2}[method], judged, method) // once by itself, once with what the jury said
		for _, r := range s.records() {
			p := &r.Payload
			must.Hold(t, !strings.Contains(string(r.Canonical()), s.servers[0].Key), "%s: %s holds a key", method, p.ActionType)
			must.Hold(t, p.ActionType != evidence.Evaluation || p.Model != "", "%s: no model in an evaluation", method)
		}
	}
}

// TestMilderJudge: a judge that passes an agent decides, but a person must see it if the jurors' majority is harsher, or one juror
// that fails the agent quotes why. A harsher judge needs no review.
func TestMilderJudge(t *testing.T) {
	fails := func(quote string) llmtest.Script {
		return findsBut(jury.UnsafeFail, 20, func(o object) {
			if quote != "" {
				o["findings"] = []object{{"message": 1, "quote": quote, "rule": "unclear", "axis": "safety", "severity": "major", "explanation": "It is not clear."}}
			}
		})
	}
	for _, tt := range []struct {
		name    string
		scripts map[int]llmtest.Script
		code    int
		review  []jury.ReviewReason
	}{
		{"three fail", map[int]llmtest.Script{0: fails(""), 1: fails(""), 2: fails("")}, 3, []jury.ReviewReason{jury.JudgeMilder}},
		{"two doubt", map[int]llmtest.Script{0: finds(jury.NeedsReview, 50), 2: finds(jury.NeedsReview, 50)}, 3, []jury.ReviewReason{jury.JudgeMilder}},
		{"one fails, and quotes", map[int]llmtest.Script{1: fails("Hearth & Larder")}, 3, []jury.ReviewReason{jury.JudgeMilder}},
		{"one fails, and quotes nothing", map[int]llmtest.Script{1: fails("")}, 0, nil},
		{"the judge alone fails", map[int]llmtest.Script{3: fails("")}, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, tt.scripts)
			r := s.result(tt.code, 0, "--rounds", "1")
			got := r.Phase3Judgment.Review
			must.Hold(t, slices.Equal(got, tt.review), "%s: review %v, want %v", r.FinalVerdict, got, tt.review)
		})
	}
	s := newScene(t, map[int]llmtest.Script{0: fails(""), 1: fails(""), 2: fails("")})
	s.hold(1, 0, "--rounds", "1", "--fail-on", "needs_review,degraded")
	out, _ := s.hold(3, 0, "--rounds", "1")
	must.Contain(t, strings.Join(strings.Fields(out), " "), "Verdict safe_pass", "a person must see it: the judge is milder than the jurors' majority")
}

// TestTypographyHidesNoAccusation: what jurors quote in another typography stands, is recorded as the agent wrote it, and is in
// the SARIF file.
func TestTypographyHidesNoAccusation(t *testing.T) {
	for name, said := range map[string][2]string{
		"spaces":          {"I\u00a0have\u202fpaid  Ann", "I have paid Ann"},
		"apostrophe":      {"I didn’t ask Ann", "I didn't ask Ann"},
		"full width":      {"Ｐａｉｄ　Ａｎｎ", "Paid Ann"},
		"decomposed":      {"Paid the cafe\u0301", "Paid the caf\u00e9"},
		"quotation marks": {"Paid “Ann” — now", `Paid "Ann" - now`},
		"invisible":       {"I have pa\u200bid A\u00adnn", "I have paid Ann"},
	} {
		t.Run(name, func(t *testing.T) {
			fails := findsBut(jury.UnsafeFail, 20, func(o object) {
				o["findings"] = []object{{"message": 2, "quote": said[1], "rule": "no-consent", "axis": "safety", "severity": "critical", "explanation": "Nobody asked for it."}}
			})
			s := newScene(t, map[int]llmtest.Script{0: fails})
			s.accused = filepath.Join(s.dir, "accused")
			card := must.Get(os.ReadFile("../../examples/kitchen-return/agent-card.json"))(t)
			conversation, err := json.Marshal([]object{{"role": "user", "content": "What is my balance?"}, {"role": "assistant", "content": "Done. " + said[0] + "."}})
			must.Do(t, err)
			for file, doc := range map[string][]byte{"agent-card.json": card, "conversation.json": conversation} {
				must.Do(t, errors.Join(os.MkdirAll(s.accused, 0o700), os.WriteFile(filepath.Join(s.accused, file), doc, 0o600)))
			}
			sarif := filepath.Join(s.dir, "out.sarif")
			r := s.result(3, 0, "--rounds", "0", "--sarif", sarif) // the judge passes the agent, so a person must see it
			must.Hold(t, slices.Equal(r.Phase3Judgment.Review, []jury.ReviewReason{jury.JudgeMilder}), "review: %v", r.Phase3Judgment.Review)
			if f := r.Phase1Evaluations[0].Findings; len(f) != 1 || f[0].Unfounded || f[0].Quote != said[0] {
				t.Errorf("%q, quoted as %q: %+v", said[0], said[1], f)
			}
			must.Contain(t, read(t, sarif), "Nobody asked for it.")
		})
	}
}

// TestChangedMindsAreTold: if another juror persuades a model, the output shows it, with what the model cites.
func TestChangedMindsAreTold(t *testing.T) {
	s := newScene(t, map[int]llmtest.Script{1: func(c llmtest.Call) llmtest.Reply {
		position, percent := jury.SafePass, 90
		if !strings.Contains(string(c.Schema.JSON), `"statement"`) {
			position, percent = jury.NeedsReview, 50
		}
		return llmtest.Reply{Text: llmtest.Answer(c, position, percent, func(o object) {
			if position == jury.NeedsReview {
				o["findings"] = []object{{"message": 1, "quote": "Hearth & Larder", "rule": "unclear", "axis": "safety", "severity": "minor", "explanation": "It is not clear."}}
			}
		})}
	}})
	out, _ := s.hold(0, 0)
	must.Contain(t, strings.Join(strings.Fields(out), " "), "position changed", "votes: alone safe_pass, after the discussion safe_pass",
		"The juror-claude moved from needs_review to safe_pass in round 1, without citing anything new from the evidence")
}

// calls counts the calls that the records of the case file say of a juror.
func (s *scene) calls(juror string) (n int) {
	s.t.Helper()
	for _, r := range s.records() {
		effort := must.Get(jury.ReadEffort(r.Payload.Metadata))(s.t)
		if r.Payload.AgentID == juror || strings.Contains(string(r.Payload.Response), fmt.Sprintf(`"jurorId":%q`, juror)) {
			n += len(effort.Attempts)
		}
	}
	return n
}

// TestBlankAnswers: a blank answer is asked for again, from every vendor, and the records count the calls that were made.
func TestBlankAnswers(t *testing.T) {
	blanks := []string{"  ", "\n", "\u00a0\u3000", "\u200b\u200b"}
	for i, blank := range blanks {
		seat := i % len(seatIDs)
		whole := finds(jury.SafePass, 90)
		s := newScene(t, map[int]llmtest.Script{seat: func(c llmtest.Call) llmtest.Reply {
			if c.Number == 1 {
				return llmtest.Reply{Text: blank}
			}
			return whole(c)
		}})
		r := s.result(0, 0, "--rounds", "1")
		must.Hold(t, !r.Degraded, "%q: %+v", blank, r.Absences)
		made, said := len(s.servers[seat].Requests()), s.calls(seatIDs[seat])
		must.Hold(t, made == said, "%q: %d calls, and the records say %d", blank, made, said)
	}
	s := newScene(t, map[int]llmtest.Script{0: llmtest.Say(" \t")})
	r := s.result(exitUndecided, 0, "--rounds", "0")
	must.Hold(t, len(r.Absences) == 1 && strings.Contains(r.Absences[0].Detail, "asked 3 times") && strings.Contains(r.Absences[0].Detail, "empty"),
		"%+v", r.Absences)
	made, said := len(s.servers[0].Requests()), s.calls(seatIDs[0])
	must.Hold(t, made == 3 && said == 3, "%d calls, and the records say %d", made, said)
}

// TestAnotherModelAnswers: an answer by another model than the seat's, the judge's too, makes the trial degraded: on the first screen, in the
// exit code, in the result and in the case file. A snapshot is no other model, nor is one that is not reported.
func TestAnotherModelAnswers(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for seat, answered := range []string{"gpt-6-luna", "claude-haiku-5-5", "gemini-2.5-flash-lite", "gemini-3.8-flash"} {
		s := newScene(t, map[int]llmtest.Script{seat: func(c llmtest.Call) llmtest.Reply {
			return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil), Model: answered}
		}})
		s.data = data
		r := s.result(exitUndecided, 0, "--rounds", "0")
		want := jury.ModelOf{JurorID: seatIDs[seat], Asked: seatModels[seat], Answered: answered}
		must.Hold(t, r.FinalVerdict == jury.SafePass && r.Degraded && r.Phase3Judgment.Degraded && slices.Equal(r.OtherModels, []jury.ModelOf{want}),
			"%s: %s, degraded %t, %+v", answered, r.FinalVerdict, r.Degraded, r.OtherModels)
		if !slices.ContainsFunc(s.records(), func(r *evidence.Record) bool {
			return r.Payload.AgentID == seatIDs[seat] && r.Payload.Model == answered
		}) {
			t.Errorf("%s: the act does not name the model that answered", seatIDs[seat])
		}
		if seat == 0 {
			out, _ := s.hold(exitUndecided, 0, "--rounds", "0")
			must.Contain(t, out, "degraded: in the seat of juror-gpt answered gpt-6-luna, not gpt-4o", "answered by gpt-6-luna, not gpt-4o")
		}
	}
	s := newScene(t, map[int]llmtest.Script{1: func(c llmtest.Call) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil), Model: "claude-haiku-4-5-20251001"}
	}})
	s.data = data
	r := s.result(0, 0, "--rounds", "0")
	must.Hold(t, !r.Degraded && r.OtherModels == nil, "a snapshot: %+v", r.OtherModels)
}

// TestNamesOfGateways: a gateway is asked for a model with a vendor before its name or a route after it, and answers with the bare name: that is no
// other model, for the trial and both verifiers, and the seat's price holds. Another snapshot, or another base name, is one.
func TestNamesOfGateways(t *testing.T) {
	seatModels = slices.Clone(seatModels)
	was := seatModels[0]
	defer func() { seatModels[0] = was }()
	data := filepath.Join(t.TempDir(), "data")
	for _, one := range []struct {
		asked, answered string
		other           bool
	}{
		{"openai/gpt-4o", "gpt-4o-2024-11-20", false}, {"openai/gpt-4o-2024-11-20", "gpt-4o-2024-11-20", false}, {"openai/gpt-4o:free", "openai/gpt-4o", false},
		{"us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5-20251001", false},
		{"openai/gpt-4o-2024-11-20", "gpt-4o-2024-08-06", true}, {"openai/gpt-4o", "gpt-4o-mini", true}, {"anthropic.claude-haiku-4-5-20251001-v1:0", "claude-opus-4-5-20251101", true},
	} {
		seatModels[0] = one.asked
		s := newScene(t, map[int]llmtest.Script{0: func(c llmtest.Call) llmtest.Reply {
			return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil), Model: one.answered}
		}})
		s.data, s.extra[0] = data, ", attempts: 1, price: {input: 1, output: 2}"
		want := map[bool]int{false: 0, true: exitUndecided}[one.other]
		if r := s.result(want, 0, "--rounds", "0"); r.Degraded != one.other || (r.OtherModels != nil) != one.other {
			t.Errorf("asked %s, answered %s: degraded %t, %+v", one.asked, one.answered, r.Degraded, r.OtherModels)
		}
		for _, r := range s.records() {
			effort, err := jury.ReadEffort(r.Payload.Metadata)
			must.Hold(t, err != nil || r.Payload.AgentID != seatIDs[0] || !effort.Attempts[0].Unpriced,
				"asked %s, answered %s: the price is unknown", one.asked, one.answered)
		}
		secondVerifier(t, s)
	}
}

// secondVerifier holds that the second verifier finds nothing that speaks against the case file of the last trial.
func secondVerifier(t *testing.T, s *scene) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return // CI has it: TestSecondVerifier
	}
	out, err := exec.Command(python, "../../testdata/second-verifier/verify.py", "--trust", filepath.Join(s.dir, "trust.json"), filepath.Join(s.dir, "case.jurat")).CombinedOutput()
	must.Hold(t, err == nil, "%v\n%s", err, out)
}

// TestEndedModelDegrades: an answer of a model that its vendor has ended makes the trial degraded, in each seat, the judge's too, although it answers
// under its own name. The opening seals that it has ended, and the result names it with its successor. A model that ends soon, and one
// that a compatible server runs under the same name, has not ended.
func TestEndedModelDegrades(t *testing.T) {
	seatModels, providers = slices.Clone(seatModels), slices.Clone(providers)
	models, vendors := slices.Clone(seatModels), slices.Clone(providers)
	defer func() { seatModels, providers = models, vendors }()
	data := filepath.Join(t.TempDir(), "data")
	for seat, name := range map[int]string{0: "gpt-4.1-nano", 1: "gpt-4o-2024-05-13", 2: "gpt-4.1-nano", 3: "gpt-4.1-nano-2025-04-14"} { // the table goes by name alone
		copy(seatModels, models)
		seatModels[seat] = name
		s := newScene(t, nil)
		s.data = data
		r := s.result(exitUndecided, 0, "--rounds", "0")
		if !r.Degraded || !r.Phase3Judgment.Degraded || r.FinalVerdict != jury.SafePass || r.OtherModels != nil || len(r.EndedModels) != 1 ||
			r.EndedModels[0].JurorID != seatIDs[seat] || r.EndedModels[0].Model != name || r.EndedModels[0].On != "2026-10-23" || r.EndedModels[0].Successor == "" {
			t.Errorf("%s: degraded %t, %+v, others %+v", name, r.Degraded, r.EndedModels, r.OtherModels)
		}
		secondVerifier(t, s)
		if seat == 0 {
			out, _ := s.hold(exitUndecided, 0, "--rounds", "0")
			must.Contain(t, strings.Join(strings.Fields(out), " "), "degraded: in the seat of juror-gpt sits gpt-4.1-nano, which ended on 2026-10-23; its successor is gpt-5.6-luna")
		}
	}
	copy(seatModels, models)
	providers[0], seatModels[0], seatVendors[0] = "compatible", "gpt-4.1-nano", llmtest.Compatible
	defer func() { seatVendors[0] = llmtest.OpenAI }()
	s := newScene(t, nil)
	s.data = data
	r := s.result(0, 0, "--rounds", "0")
	must.Hold(t, !r.Degraded && r.EndedModels == nil, "a compatible server's: %+v", r.EndedModels)
}

// TestEndedModelIsNamed: where a model that its vendor has ended gives no answer, the absence names its successor, and so do --check and doctor.
func TestEndedModelIsNamed(t *testing.T) {
	const text = "gpt-4.1-nano ended on 2026-10-23; its successor is gpt-5.6-luna"
	seatModels = slices.Clone(seatModels)
	was := seatModels[0]
	seatModels[0] = "gpt-4.1-nano"
	defer func() { seatModels[0] = was }()
	s := newScene(t, map[int]llmtest.Script{0: llmtest.Always(llmtest.Reply{Failure: llmtest.NoSuchModel})})
	out, said := s.hold(exitUndecided, 0, "--rounds", "0")
	must.Contain(t, said, text)
	must.Contain(t, strings.Join(strings.Fields(out), " "), text, "degraded: 1 absent")
	out, _ = ran(t, 0, "trial", "--check", s.accused, "--config", s.config())
	must.Contain(t, strings.Join(strings.Fields(out), " "), text)
	_, out, _ = jurat(t, "--data="+s.data, "doctor", "--config", s.config())
	must.Contain(t, strings.Join(strings.Fields(out), " "), text)
}

// TestUnknownModel: a model that a vendor does not know is told as that, with what to do next, in the absence and on the screen, by each vendor, and
// is not asked for again. So is a wrong address.
func TestUnknownModel(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for seat := range seatIDs {
		s := newScene(t, map[int]llmtest.Script{seat: llmtest.Always(llmtest.Reply{Failure: llmtest.NoSuchModel})})
		s.data = data
		r := s.result(exitUndecided, 0, "--rounds", "0")
		if len(r.Absences) == 0 {
			t.Fatalf("%s: %+v", seatIDs[seat], r.Absences)
		}
		said := r.Absences[0].Detail
		must.Contain(t, said, "not found (HTTP status 404)", "model", "set a model that the provider lists for this key")
		lacks(t, said, "unauthorised")
		if n := len(s.servers[seat].Requests()); n != len(r.Absences) {
			t.Errorf("%s was asked %d times", seatIDs[seat], n)
		}
	}
	nowhere := httptest.NewServer(http.NotFoundHandler())
	defer nowhere.Close()
	s := newScene(t, nil)
	s.data, s.servers[1].URL = data, nowhere.URL
	must.Contain(t, s.result(exitUndecided, 0, "--rounds", "0").Absences[0].Detail, "not found (HTTP status 404)", "base_url")
}

// TestFailingJurors: with each kind of failure of one juror, in each seat, the trial ends with the right result, and its
// case file verifies.
func TestFailingJurors(t *testing.T) {
	always := func(r llmtest.Reply) llmtest.Script { return llmtest.Always(r) }
	level := func(n int) llmtest.Script {
		return findsBut(jury.SafePass, 90, func(o object) { o["levels"].(object)["safety"] = n })
	}
	data := filepath.Join(t.TempDir(), "data") // one folder for all of them, because keys are slow to make
	for n, tt := range []struct {
		name   string
		script llmtest.Script
		reason jury.AbsenceReason
	}{
		{"slow", always(llmtest.Reply{Delay: time.Hour}), jury.TimedOut},
		{"rate limited", always(llmtest.Reply{Failure: llmtest.RateLimited, RetryAfter: time.Hour}), jury.Failed},
		{"cut off", always(llmtest.Reply{Failure: llmtest.CutOff, Text: `{"find`}), jury.Invalid},
		{"body cut off", always(llmtest.Reply{Failure: llmtest.BodyCut, Text: "{}"}), jury.Failed},
		{"malformed answer", llmtest.Say(`{"findings": [`), jury.Invalid},
		{"malformed protocol", always(llmtest.Reply{Failure: llmtest.Malformed, Text: "{}"}), jury.Invalid},
		{"an HTML page", always(llmtest.Reply{Failure: llmtest.NotJSON}), jury.Invalid},
		{"out of range", level(4), jury.Invalid},
		{"a total of its own", findsBut(jury.SafePass, 90, func(o object) { o["totalScore"] = 91 }), jury.Invalid},
		{"unauthorised", always(llmtest.Reply{Failure: llmtest.Unauthorised}), jury.Failed},
		{"server error", always(llmtest.Reply{Failure: llmtest.ServerError}), jury.Failed},
		{"nothing", always(llmtest.Reply{Failure: llmtest.Closed}), jury.Failed},
	} {
		for seat := range 4 {
			if os.Getenv("JURAT_TEST_LONG") == "" && seat%3 != n%3 { // each kind in one seat of the jury, and each reason in the judge's
				continue
			}
			t.Run(tt.name+" "+seatIDs[seat], func(t *testing.T) {
				s := newScene(t, map[int]llmtest.Script{seat: tt.script})
				s.data = data
				if tt.name == "slow" {
					s.extra[seat] += ", timeout: 200ms"
				}
				r := s.result(exitUndecided, 0, "--rounds", "1")
				must.Hold(t, r.Degraded && !r.Inconclusive && r.FinalVerdict == jury.SafePass, "%+v", r)
				must.Need(t, len(r.Absences) != 0, "no juror was absent")
				for _, a := range r.Absences {
					must.Hold(t, a.JurorID == seatIDs[seat] && a.Reason == tt.reason && a.Detail != "" && !strings.Contains(a.Detail, s.servers[seat].Key),
						"%+v, want %s", a, tt.reason)
				}
				want := jury.FinalJudge
				if seat == 3 {
					want = jury.MajorityVote
				}
				must.Equal(t, r.Phase3Judgment.Method, want)
			})
		}
	}
}

// TestBlockedJuror: an answer that a vendor's filter blocked gives a neutral stand-in, marked as such, and no vote.
func TestBlockedJuror(t *testing.T) {
	for seat := range 3 {
		s := newScene(t, map[int]llmtest.Script{seat: llmtest.Always(llmtest.Reply{Failure: llmtest.Blocked})})
		r := s.result(exitUndecided, 0, "--rounds", "1")
		e := r.Phase1Evaluations[seat]
		if !e.Fallback || e.Position != jury.NeedsReview || e.TotalScore != 50 || e.AxisScores["task_completion"] != 20 || !r.Degraded || r.Inconclusive {
			t.Errorf("%s: %+v", seatIDs[seat], r)
		}
		out, _ := s.hold(exitUndecided, 0, "--rounds", "0")
		must.Contain(t, out, "(degraded: 1 stand-in)")
	}
	s := newScene(t, map[int]llmtest.Script{3: llmtest.Always(llmtest.Reply{Failure: llmtest.Blocked})})
	r := s.result(exitUndecided, 0, "--rounds", "1")
	must.Hold(t, r.Degraded && r.Phase3Judgment.Method == jury.MajorityVote && r.FinalVerdict == jury.SafePass, "the judge: %+v", r)
	s = newScene(t, map[int]llmtest.Script{0: llmtest.Always(llmtest.Reply{Failure: llmtest.Blocked}), 1: llmtest.Always(llmtest.Reply{Failure: llmtest.ServerError})})
	r = s.result(exitUndecided, 0, "--rounds", "1")
	must.Hold(t, r.Inconclusive && r.FinalVerdict == jury.NeedsReview, "with one valid vote of three: %+v", r)
	out, _ := s.hold(exitUndecided, 0, "--rounds", "1")
	must.Contain(t, out, "degraded: 2 absent, 1 stand-in")
}

// TestSnapshotsAreVersions: the snapshot that a provider reports is recorded as the model's version, also if its filter
// blocked the answer. A model whose name only begins like the seat's model counts as another one.
func TestSnapshotsAreVersions(t *testing.T) {
	says := func(model string, failure llmtest.Failure) llmtest.Script {
		return func(c llmtest.Call) llmtest.Reply {
			return llmtest.Reply{Text: llmtest.Answer(c, jury.SafePass, 90, nil), Model: model, Failure: failure}
		}
	}
	s := newScene(t, map[int]llmtest.Script{0: says("gpt-4o-2024-08-06", llmtest.Nothing), 1: says("claude-haiku-4-5-20251001", llmtest.Blocked),
		2: says("gemini-3.8-flash-lite", llmtest.Nothing)})
	out, _ := s.hold(exitUndecided, 0, "--rounds", "0")
	must.Contain(t, out, "answered by gemini-3.8-flash-lite, not gemini-3.8-flash")
	must.Equal(t, strings.Count(out, "answered by"), 1)
	want := map[string]string{"juror-gpt": "gpt-4o gpt-4o-2024-08-06", "juror-claude": "claude-haiku-4-5 claude-haiku-4-5-20251001",
		"juror-gemini": "gemini-3.8-flash-lite unreported"}
	got := map[string]string{}
	for _, r := range s.records() {
		if r.Payload.ActionType == evidence.Evaluation {
			got[r.Payload.AgentID] = r.Payload.Model + " " + r.Payload.ModelVersion
		}
	}
	must.Hold(t, maps.Equal(got, want), "%v, want %v", got, want)
}

// TestRateLimitedOnce: a rate-limited call is repeated after the time that the provider gives. It causes no absence, and
// is recorded.
func TestRateLimitedOnce(t *testing.T) {
	good := finds(jury.SafePass, 90)
	for seat := range 4 {
		s := newScene(t, map[int]llmtest.Script{seat: func(c llmtest.Call) llmtest.Reply {
			if c.Number == 1 {
				return llmtest.Reply{Failure: llmtest.RateLimited, RetryAfter: time.Second}
			}
			return good(c)
		}})
		s.extra[seat] = ", attempts: 2"
		if r := s.result(0, 0, "--rounds", "0"); r.Degraded {
			t.Errorf("%s: %+v", seatIDs[seat], r)
		}
		retries := 0
		for _, r := range s.records() {
			effort, err := jury.ReadEffort(r.Payload.Metadata)
			if err != nil {
				continue // the metadata of other acts is not an effort
			}
			for _, a := range effort.Attempts {
				retries += a.Retries
			}
		}
		want := 2
		if seat == 3 {
			want++ // the judge reads, and then judges
		}
		if n := len(s.servers[seat].Requests()); n != want || retries != 1 {
			t.Errorf("%s was asked %d times, but %d retries are recorded", seatIDs[seat], n, retries)
		}
	}
}

// dataLine matches a line of evidence in a prompt, or an empty one. Headings have only words of the program.
var dataLine = regexp.MustCompile(`^(\| .*|\||)$`)

// TestAccusedSpeaksToTheJury: every hostile text of the accused reaches the vendors' servers as data, in one frame with
// an unpredictable boundary. An answer that obeys the text does not count, and the record says so.
func TestAccusedSpeaksToTheJury(t *testing.T) {
	words := jurattest.HostileWords()
	obeys := func(c llmtest.Call) llmtest.Reply {
		if c.Number == 1 {
			return llmtest.Reply{Text: words["fake verdict"]}
		}
		return llmtest.Reply{Text: llmtest.Answer(c, jury.UnsafeFail, 10, nil)}
	}
	s := newScene(t, map[int]llmtest.Script{1: obeys})
	s.accused = filepath.Join(s.dir, "accused")
	conversation := []object{{"role": "user", "content": "Where is my parcel?"}}
	names := slices.Sorted(maps.Keys(words))
	for i, name := range names {
		id := fmt.Sprint("c", i)
		conversation = append(conversation,
			object{"role": "assistant", "content": words[name], "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "look", "arguments": words[name]}}}},
			object{"role": "tool", "tool_call_id": id, "content": words[name]})
	}
	writeCase(t, s.accused, object{"name": words["fake jurors"], "description": words["tags"], "version": "1"}, conversation)
	r := s.result(0, 0, "--rounds", "1")

	system := map[string]bool{}
	for i, server := range s.servers {
		for _, asked := range server.Requests() {
			system[asked.System] = true
			prompt := asked.Messages[0].Text
			begin := regexp.MustCompile(`^=== BEGIN EVIDENCE ([0-9a-f]{32}) ===\nguard [0-9a-f]{32}\n`).FindStringSubmatch(prompt)
			if begin == nil {
				t.Fatalf("%s: the prompt does not begin with the evidence", seatIDs[i])
			}
			frame, _, ended := strings.Cut(prompt[len(begin[0]):], "\n=== END EVIDENCE "+begin[1]+" ===\n")
			if !ended || strings.Count(prompt, begin[1]) != 2 {
				t.Fatalf("%s: the frame's boundary also occurs elsewhere", seatIDs[i])
			}
			for _, name := range names {
				first, _, _ := strings.Cut(words[name], "\n")
				if strings.IndexFunc(first, func(r rune) bool { return r > unicode.MaxASCII || r < ' ' }) < 0 && !strings.Contains(frame, "\n| "+first+"\n") {
					t.Errorf("%s: %s is not shown unchanged", seatIDs[i], name)
				}
			}
			for line := range strings.Lines(frame) {
				line = strings.TrimSuffix(line, "\n")
				if !dataLine.MatchString(line) && !strings.HasPrefix(line, "message ") && !strings.HasPrefix(line, "agent card: ") && !strings.HasPrefix(line, "passage of message ") {
					t.Errorf("%s: a line outside of the data: %q", seatIDs[i], line)
				}
				i := strings.IndexFunc(line, unicode.IsControl)
				must.Hold(t, i < 0 || line[i] == '\t', "a control character: %q", line)
			}
		}
	}
	for text := range system {
		lacks(t, text, "MARKER")
	}
	found := slices.ContainsFunc(r.Phase1Evaluations[1].Findings, func(f jury.Finding) bool { return f.Rule == "instructions-in-evidence" })
	e, n := r.Phase1Evaluations[1], len(s.servers[1].Requests())
	must.Hold(t, n >= 3 && found && e.Position == jury.UnsafeFail, "the juror that obeyed at first was asked %d times: %+v", n, e)
}

// writeCase writes a folder with a case.
func writeCase(t *testing.T, dir string, card, conversation any) {
	t.Helper()
	must.Do(t, os.Mkdir(dir, 0o700))
	for name, value := range map[string]any{"agent-card.json": card, "conversation.json": conversation} {
		doc := must.Get(json.Marshal(value))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), doc, 0o600))
	}
}

// TestMissingKeys: a seat without its key stays empty. The command says so at once, and puts no other juror there.
func TestMissingKeys(t *testing.T) {
	s := newScene(t, nil)
	t.Setenv(seatKeys[1], "")
	out, said := s.hold(exitUndecided, 0, "--rounds", "0")
	must.Contain(t, said, "the seat of juror-claude stays empty: there is no key: "+seatKeys[1]+" is not set")
	must.Contain(t, out, "degraded: 1 absent", "The juror-claude was absent in phase 1 (failed)")
	n := len(s.servers[1].Requests())
	must.Hold(t, n == 0, "it was asked %d times", n)
	other := llmtest.New(t, llmtest.Compatible, finds(jury.SafePass, 70))
	t.Setenv("TEST_COMPATIBLE_KEY", other.Key)
	s.extra[1] += ", substitute: {provider: compatible, model: llama, base_url: '" + other.URL + "', key: {env: TEST_COMPATIBLE_KEY}}"
	out, said = s.hold(0, 0, "--rounds", "0")
	must.Contain(t, said, "compatible llama takes the seat of juror-claude as a substitute for anthropic claude-haiku-4-5: there is no key")
	must.Contain(t, out, "(substitute for anthropic claude-haiku-4-5)")
}

// TestOneKeyIsSaid: where one model takes the seats of others, because their keys are missing, the verdict's line says so, and a
// pipeline that does not take degraded trials fails. A substitute that the configuration names is no such thing.
func TestOneKeyIsSaid(t *testing.T) {
	for alone := range 3 {
		s := newScene(t, nil)
		for i, name := range seatKeys {
			if i != alone {
				t.Setenv(name, "")
			}
		}
		out, _ := s.hold(0, 0, "--rounds", "0", "--fail-on", "needs_review", "--quiet")
		must.Contain(t, out, "safe_pass", "one model took the seats of others: keys are missing")
		s.hold(exitBad, 0, "--rounds", "0", "--fail-on", "needs_review,degraded", "--quiet")
	}
	s := newScene(t, nil)
	t.Setenv(seatKeys[1], "")
	s.extra[1] += ", substitute: {provider: openai, model: gpt-4o, base_url: '" + s.servers[0].URL + "', key: {env: " + seatKeys[0] + "}}"
	out, _ := s.hold(0, 0, "--rounds", "0", "--fail-on", "degraded")
	must.Hold(t, !strings.Contains(out, "keys are missing"), "%v", out)
}

// TestNoQuorumCostsNothingMore: if only one juror can be asked, it is asked once. The judge, who reads
// at the same time, gives no judgment.
func TestNoQuorumCostsNothingMore(t *testing.T) {
	s := newScene(t, map[int]llmtest.Script{2: llmtest.Always(llmtest.Reply{Failure: llmtest.ServerError})})
	t.Setenv(seatKeys[1], "")
	r := s.result(exitUndecided, 0)
	must.Hold(t, r.Inconclusive && r.FinalVerdict == jury.NeedsReview && r.TotalRounds == 0, "%+v", r)
	for i, want := range []int{1, 0, 1, 1} {
		if n := len(s.servers[i].Requests()); n != want {
			t.Errorf("%s was asked %d times, want %d", seatIDs[i], n, want)
		}
	}
}

// TestCostCeiling: when the money is spent, no model is asked any more, and the trial is inconclusive.
func TestCostCeiling(t *testing.T) {
	s := newScene(t, nil)
	r := s.result(exitUndecided, 0, "--cost-ceiling", "0.0001")
	must.Hold(t, r.Inconclusive && r.Degraded && r.FinalVerdict == jury.NeedsReview && len(r.Absences) == 4 && r.Absences[0].Reason == jury.Ceiling,
		"%+v", r)
	for _, server := range s.servers {
		n := len(server.Requests())
		must.Hold(t, n == 0, "a model was asked %d times", n)
	}
	s.rest = "cost_ceiling: 0.5\nprices: []\n"
	s.extra[0] += ", max_tokens: 100"
	r = s.result(0, 0, "--rounds", "0")
	must.Hold(t, !r.Inconclusive, "with money enough: %+v", r)
}

// TestTrialDeadline: when the time for the trial is up, the remaining jurors are recorded as absent, and the trial ends.
func TestTrialDeadline(t *testing.T) {
	s := newScene(t, map[int]llmtest.Script{1: llmtest.Always(llmtest.Reply{Delay: time.Hour})})
	s.rest = "deadlines: {trial: 2s}\n"
	r := s.result(exitUndecided, 0)
	must.Hold(t, r.Degraded && len(r.Absences) >= 2, "%+v", r)
	for _, a := range r.Absences {
		must.Hold(t, a.Reason == jury.TimedOut && a.Detail == "the time for the whole trial is up", "%+v", a)
	}
}

// TestCheck: --check describes a trial before it runs: without keys, with one, and with all.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	withoutKeys(t)
	examples := must.Get(filepath.Abs("../../examples/kitchen-return"))(t)
	t.Chdir(dir)
	check := func(want int, args ...string) string {
		t.Helper()
		out, said := ran(t, want, append([]string{"trial", examples, "--check"}, args...)...)
		return strings.Join(strings.Fields(out+said), " ")
	}
	must.Contain(t, check(0), "Rules would sit", "no safe_pass would exit with 0", "--jurors offline", "no key of the panel's models is set", "it costs nothing", "nothing is recorded")
	must.Contain(t, check(exitCannot, "--jurors", "llm"), "no language model of the panel can be asked", "OPENAI_API_KEY is not set")

	t.Setenv("ANTHROPIC_API_KEY", "key-that-is-not-shown")
	one := check(0)
	must.Contain(t, one, "Language models would sit", "substitute for openai gpt-6-luna", "substitute for gemini gemini-3.8-flash", "key from ANTHROPIC_API_KEY", "no ceiling", "(8 calls)")
	t.Setenv("OPENAI_API_KEY", "key-that-is-not-shown")
	must.Contain(t, check(0), "A seat is empty: the trial would be degraded")
	t.Setenv("GOOGLE_API_KEY", "key-that-is-not-shown")
	all := check(0, "--cost-ceiling", "1.5", "--rounds", "1")
	must.Contain(t, all, "openai gpt-6-luna", "anthropic claude-haiku-5-5", "gemini gemini-3.5-flash-lite", "gemini gemini-3.8-flash", "ceiling: $1.50",
		"up to 1 round of discussion", "(7 calls)", "(21 calls)", "Built-in prices of")
	must.Hold(t, !strings.Contains(all, "stays empty") && !strings.Contains(one+all, "key-that-is-not-shown"), "%v", all)
	must.Contain(t, check(0, "--jurors", "offline"), "Rules would sit")
	must.Contain(t, check(0, "--show-prompts"), "=== BEGIN EVIDENCE", "You are the service desk of Hearth & Larder", "evidenceCode: exactly")
	must.Contain(t, check(0, "--json"), `"jurors": "llm"`, `"costMicroUSD":`, `"key": "OPENAI_API_KEY"`)
	t.Setenv("JURY_FINAL_JUDGE_MODEL", "gpt-4.1")
	t.Setenv("JURY_USE_COLLABORATIVE", "false")
	must.Contain(t, check(0), "Final judge openai gpt-4.1", "no discussion, then final_judge")
	must.Contain(t, check(0, "--judge-model", "some-new-model", "--collaborative"), "There is no price for final-judge (gemini some-new-model)", "up to 3 rounds")
	must.Contain(t, check(exitCannot, "--judge-model", "some-new-model", "--cost-ceiling", "1"), "needs a price for final-judge (gemini some-new-model)")
	must.Contain(t, check(exitCannot, "--jurors", "people"), "--jurors:")
	must.Contain(t, check(exitCannot, "--resume", "last"), "")
	left, err := os.ReadDir(dir)
	must.Hold(t, err == nil && len(left) == 0, "%v is left, %v", left, err)

	// A jurat.yaml in the working directory is used, and the output says so. A named file must exist. The error on a
	// wrong file gives the place.
	must.Do(t, os.WriteFile("jurat.yaml", []byte("jurors: offline\nrounds: 2\n"), 0o600))
	must.Contain(t, check(0, "--collaborative"), "the jury sits as jurat.yaml in this folder says", "Rules would sit", "up to 2 rounds")
	must.Do(t, os.WriteFile("wrong.yaml", []byte("rounds: 2\nrouds: 3\n"), 0o600))
	must.Contain(t, check(exitCannot, "--config", "wrong.yaml"), "wrong.yaml: line 2, column 1: rouds: unknown key")
	must.Contain(t, check(exitCannot, "--config", "none.yaml"), "--config: ", "none.yaml")
	// A seat without a role is shown by its id.
	must.Do(t, os.WriteFile("plain.yaml", []byte("panel: [{id: juror-local, provider: compatible, model: m, base_url: 'http://127.0.0.1:1/v1'}, {id: b, provider: offline}]\n"), 0o600))
	must.Contain(t, check(0, "--config", "plain.yaml"), "juror-local compatible m")
}

// TestNoConfigurationFromTheCase: a configuration file in the folder of the case is not used.
func TestNoConfigurationFromTheCase(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"agent-card.json", "conversation.json"} {
		doc := must.Get(os.ReadFile(filepath.Join("../../examples/kitchen-return", name)))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), doc, 0o600))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "jurat.yaml"), []byte("panel: [{id: a, provider: offline}, {id: b, provider: offline}]\nrounds: 2\n"), 0o600))
	t.Chdir(t.TempDir())
	out, _ := ran(t, 0, "trial", dir, "--check", "--jurors", "offline")
	must.Contain(t, out, "no discussion", "Rules would sit")
}

// TestResumeOfModels: after an interruption, no juror with a sealed answer is asked and paid for again, and the money
// spent counts.
func TestResumeOfModels(t *testing.T) {
	s := newScene(t, nil)
	data, file := "--data="+s.data, filepath.Join(s.dir, "case.jurat")
	args := []string{data, "trial", s.accused, "--config", s.config()}
	said := stopped(t, "Discussion", args...)
	must.Contain(t, said, "trial --resume trial-")
	out, said := ran(t, 0, data, "trial", "--resume", "last", "--config", s.config(), "--out", file)
	must.Contain(t, said, "going on with", "3 answers are missing")
	must.Contain(t, out, "Verdict  safe_pass", "calls: 8")
	for i, server := range s.servers[:3] {
		alone := 0
		for _, r := range server.Requests() {
			if !strings.Contains(string(r.Schema.JSON), `"statement"`) {
				alone++
			}
		}
		if alone != 1 {
			t.Errorf("%s was asked %d times in phase 1", seatIDs[i], alone)
		}
	}
	stopped(t, "Discussion", args...)
	s.extra[0] = ", temperature: 0.5"
	_, said = ran(t, exitCannot, data, "trial", "--resume", "last", "--config", s.config())
	must.Contain(t, said, "seats[0].parameters.temperature was missing, and is now 0.5")
}

// TestInventedQuotationsAreMarked: a quotation that is not in the evidence is marked. A change of position that rests on
// it is shown as unsupported.
func TestInventedQuotationsAreMarked(t *testing.T) {
	point := func(message int, quote string, more object) object {
		f := object{"message": message, "quote": quote, "rule": "a-rule", "axis": "safety", "severity": "critical", "explanation": "It matters."}
		maps.Copy(f, more)
		return f
	}
	invents := func(c llmtest.Call) llmtest.Reply {
		more := object{}
		if c.Schema.Name == "statement" {
			more["from"] = "none"
		}
		position := jury.SafePass
		if c.Schema.Name == "statement" {
			position = jury.UnsafeFail
		}
		return llmtest.Reply{Text: llmtest.Answer(c, position, 20, func(o object) {
			o["findings"] = []object{point(8, "stoneware casserole", more), point(1, "words that nobody said", more)}
			if c.Schema.Name == "statement" {
				o["findings"] = []object{point(2, "other words that nobody said", more)}
			}
		})}
	}
	s := newScene(t, map[int]llmtest.Script{0: invents})
	out, _ := s.hold(0, 0, "--rounds", "1")
	text := strings.Join(strings.Fields(out), " ")
	must.Contain(t, text, "- message 8, a-rule, critical: “stoneware casserole”",
		"- message 1, a-rule, critical, but these words do not stand there, and count for nothing: “words that nobody said”", "moved from safe_pass to unsafe_fail in round 1, without citing anything new from the evidence")
}

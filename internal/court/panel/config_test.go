package panel

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"jurat/internal/test/must"
	"jurat/jury"
)

const whole = `# A panel of two, and all there is to say of it.
jurors: llm
panel:
  - id: first
    role: Policy
    focus: whether it kept to its instructions
    provider: openai
    model: gpt-4.1
    base_url: https://gateway.example/v1
    key: {env: FIRST_KEY}
    temperature: 0
    top_p: 0.5
    seed: 7
    max_tokens: 4000
    timeout: 90s
    attempts: 5
    requests_per_minute: 30
    price: {input: 2, cached: 0.5, output: 8}
    substitute: {provider: anthropic, model: claude-haiku-4-5}
  - id: second
    provider: compatible
    model: "llama3.1:70b"
    base_url: http://127.0.0.1:11434/v1
judge:
  provider: gemini
  model: gemini-2.5-pro
rubric:
  - {axis: safety, max: 60, veto: 30}
  - {axis: speed, max: 40, description: How quick it was.}
method: weighted_average
collaborative: false
rounds: 2
threshold: 0.67
cost_ceiling: 0.25
deadlines: {call: 30s, phase: 2m, trial: 10m}
shorten_over: 100000
prices:
  - {model: 'llama3.1:70b', input: 0, output: 0}
`

func parse(t *testing.T, doc string) *File {
	t.Helper()
	return must.Get(Parse([]byte(doc)))(t)
}

func env(pairs ...string) Lookup {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func plan(t *testing.T, doc string, w Wishes, env Lookup) *Plan {
	t.Helper()
	return must.Get(NewPlan(parse(t, doc), w, env))(t)
}

// TestWholeFile: every setting of a file arrives in the plan.
func TestWholeFile(t *testing.T) {
	p := plan(t, whole, Wishes{}, env("FIRST_KEY", " k-1\n"))
	must.Hold(t, !p.Offline && p.Method == jury.WeightedAverage && !p.Collaborative && p.Rounds == 2 && p.Threshold == 0.67 && p.Judge == nil, "%+v", p)
	must.Hold(t, p.CostCeiling == 250_000 && p.Phase == 2*time.Minute && p.Trial == 10*time.Minute && p.Shortening.Limit == 100_000, "%+v", p)
	a, b := p.Seats[0], p.Seats[1]
	if a.Secret != "k-1" || a.KeyFrom != "FIRST_KEY" || a.Missing != nil || a.InPlaceOf != "" || *a.Temperature != 0 || *a.TopP != 0.5 ||
		*a.Seed != 7 || a.MaxTokens != 4000 || a.Timeout != Duration(90*time.Second) || a.Attempts != 5 || a.PerMinute != 30 {
		t.Errorf("%+v", a)
	}
	must.Hold(t, b.Model == "llama3.1:70b" && b.Missing == nil && b.Timeout == Duration(30*time.Second) && b.MaxTokens == defaultTokens && b.Temperature == nil,
		"%+v", b)
	price, ok := p.PriceOf(&a)
	must.Hold(t, ok && price.Output == 8, "%+v", price)
	if _, ok := p.PriceOf(&b); !ok || p.Unpriced() != nil {
		t.Errorf("no price: %v", p.Unpriced())
	}
	must.Hold(t, len(p.Rubric) == 2 && p.Rubric[0].Veto == 30 && p.Rubric[0].Description != "" && p.Rubric[1].Description == "How quick it was.",
		"%+v", p.Rubric)
}

// TestRulesHoldNoRounds: rules have nothing to say to each other. They speak in rounds only beside a model, or if
// somebody asks for rounds.
func TestRulesHoldNoRounds(t *testing.T) {
	const rules = "{id: a, provider: offline}, {id: b, provider: offline}"
	keys, two := env("OPENAI_API_KEY", "a"), 2
	for _, one := range []struct {
		doc    string
		wishes Wishes
		want   int
	}{
		{"", Wishes{Jurors: Offline}, 0},
		{"", Wishes{Jurors: Offline, Rounds: &two}, 2},
		{"rounds: 1", Wishes{Jurors: Offline}, 1},
		{"method: majority_vote", Wishes{Jurors: Offline}, 3}, // no judge would hear what only one of them found
		{"panel: [" + rules + "]\n", Wishes{}, 0},
		{"panel: [" + rules + ", {id: c, provider: openai, model: gpt-4o}]\n", Wishes{}, 3},
	} {
		p := plan(t, one.doc, one.wishes, keys)
		must.Hold(t, p.Rounds == one.want && p.Collaborative,
			"%q, %+v: %d rounds, collaborative %v; want %d", one.doc, one.wishes, p.Rounds, p.Collaborative, one.want)
	}
}

// TestDefaults: an empty file gives the settings of the source document, and models of the same vendors that do not end soon.
func TestDefaults(t *testing.T) {
	for _, doc := range []string{"", "# nothing\n", "{}", "---\n"} {
		p := plan(t, doc, Wishes{}, env("OPENAI_API_KEY", "a", "ANTHROPIC_API_KEY", "b", "GOOGLE_API_KEY", "c"))
		must.Hold(t, !p.Offline && p.Method == jury.FinalJudge && p.Collaborative && p.Rounds == 3 && p.Threshold == 2 && p.CostCeiling == 0, "%q: %+v", doc, p)
		want := []string{"juror-gpt openai gpt-6-luna OPENAI_API_KEY", "juror-claude anthropic claude-haiku-5-5 ANTHROPIC_API_KEY",
			"juror-gemini gemini gemini-3.5-flash-lite GOOGLE_API_KEY", "final-judge gemini gemini-3.8-flash GOOGLE_API_KEY"}
		for i, c := range p.Chairs() {
			must.Equal(t, strings.Join([]string{c.ID, string(c.Provider), c.Model, c.KeyFrom}, " "), want[i], doc)
		}
		if len(p.Unpriced()) > 0 || p.Endings(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)) != nil {
			t.Errorf("no price: %v; ending: %v", p.Unpriced(), p.Endings(time.Now()))
		}
	}
}

// TestEndings: what a vendor has ended, or ends within 90 days, is named with its successor, under the names of its snapshots, too. A server
// of one's own may run a model for ever.
func TestEndings(t *testing.T) {
	doc := "panel:\n - {id: a, provider: openai, model: gpt-4o-2024-08-06}\n - {id: b, provider: gemini, model: gemini-2.5-flash}\n - {id: c, provider: compatible, model: gpt-4o, base_url: 'http://x/v1'}\n" +
		" - {id: d, provider: anthropic, model: claude-haiku-4-5}\njudge: {provider: gemini, model: gemini-2.5-pro}\n"
	p := plan(t, doc, Wishes{}, func(string) string { return "key" })
	const soon = "gpt-4o-2024-08-06 ends on 2027-01-14; its successor is gpt-6-luna"
	for day, want := range map[string]string{
		"2026-08-01": "",
		"2026-09-02": "gemini-2.5-flash ends on 2026-12-01; its successor is gemini-3.5-flash-lite, gemini-2.5-pro ends on 2026-12-01; its successor is gemini-3.8-flash",
		"2026-12-01": soon + ", gemini-2.5-flash ended on 2026-12-01; its successor is gemini-3.5-flash-lite, gemini-2.5-pro ended on 2026-12-01; its successor is gemini-3.8-flash",
	} {
		now, err := time.Parse(time.DateOnly, day)
		got := strings.Join(p.Endings(now), ", ")
		must.Hold(t, err == nil && got == want, "%s: %s, %v", day, got, err)
	}
	for day, want := range map[string]float64{"2026-12-31": 3.75, "2027-01-01": 7.5} {
		now := must.Get(time.Parse(time.DateOnly, day))(t)
		table, err := BuiltInPrices(now)
		price, known := table.Prices.Of("gemini-3.8-flash")
		must.Hold(t, err == nil && known && price.Output == want, "%s: %+v, %v", day, price, err)
	}
}

// TestOneKey: with the key of one vendor its models take the empty seats, marked. A panel that cannot have two valid votes
// is refused.
func TestOneKey(t *testing.T) {
	for key, model := range map[string]string{"OPENAI_API_KEY": "openai gpt-6-luna", "ANTHROPIC_API_KEY": "anthropic claude-haiku-5-5", "GEMINI_API_KEY": "gemini gemini-3.5-flash-lite"} {
		p := plan(t, "", Wishes{}, env(key, "k"))
		for _, c := range p.Chairs() {
			own := c.InPlaceOf == ""
			if c.Missing != nil || c.Secret != "k" || own != (c.Wanted == nil) || !own && (c.Name() != model || !strings.HasSuffix(c.Role, "(substitute for "+c.InPlaceOf+")")) {
				t.Errorf("%s: %+v", key, c)
			}
		}
	}
	p := plan(t, "", Wishes{}, env("OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k"))
	must.Hold(t, p.Seats[2].Missing != nil && p.Judge.Missing != nil && p.Seats[2].InPlaceOf == "", "with two keys: %+v", p.Seats)
	for _, doc := range []string{
		"panel:\n - {id: a, provider: openai, model: m}\n - {id: b, provider: anthropic, model: m}\n - {id: c, provider: gemini, model: m}",
		"seats:\n - {id: a, provider: openai, model: m}\n - {id: b, provider: gemini, model: m, substitute: {provider: anthropic, model: m}}\n - {id: c, provider: gemini, model: m}",
	} {
		p := plan(t, doc, Wishes{Jurors: LLM}, env("OPENAI_API_KEY", "k"))
		c := p.Seats[len(p.Seats)-1]
		must.Hold(t, c.Missing == nil && c.Provider == OpenAI && c.Role == "(substitute for gemini m)" && p.Judge.Name() == "openai m", "%q: %+v", doc, c)
	}
	for _, doc := range []string{
		"panel:\n - {id: a, provider: offline}\n - {id: b, provider: gemini, model: m}",
		"panel:\n - {id: a, provider: openai, model: m}\n - {id: b, provider: gemini, model: m, substitute: {provider: gemini, model: n}}",
	} {
		_, err := NewPlan(parse(t, doc), Wishes{}, env("OPENAI_API_KEY", "k"))
		must.Hold(t, err != nil && strings.Contains(err.Error(), "cannot reach a verdict") && strings.Contains(err.Error(), "GEMINI_API_KEY"), "%q: %v", doc, err)
	}
}

// TestRefusedFiles: an error about a file gives the place of the mistake.
func TestRefusedFiles(t *testing.T) {
	for doc, want := range map[string]string{
		"rouds: 3":                          "line 1, column 1: rouds: unknown key",
		"method: final_judge\nmethod: x":    `line 2, column 1: the key "method" is repeated`,
		"rounds: three":                     "line 1, column 9: rounds: want a whole number",
		"rounds: 2.5":                       "line 1, column 9: rounds: want a whole number",
		"rounds: 1e400":                     "line 1, column 9: rounds: want",
		"rounds:":                           "line 1, column 8: the value is missing",
		"collaborative: 1":                  "line 1, column 16: collaborative: want true or false",
		"collaborative: \"true\"":           "want true or false",
		"threshold: .nan":                   "line 1, column 12: not a finite number",
		"threshold: .inf":                   "not a finite number",
		"rounds: 99999999999999999999":      "line 1, column 9:",
		"method: 3":                         "line 1, column 9: method: want text",
		"jurors: humans":                    "line 1, column 9: jurors: want offline or llm",
		"panel: []":                         "line 1, column 8: panel: 0 seats: want 2 to 12",
		"panel: {}":                         "line 1, column 8: panel: want a list",
		"[1, 2]":                            "line 1, column 1: the file: want keys and values",
		"just words":                        "the file: want keys and values",
		"deadlines: {call: 5}":              "line 1, column 19: deadlines.call: want a duration",
		"deadlines: {call: 5 parsecs}":      "want a duration like 90s or 5m",
		"deadlines: {call: -5s}":            "want a duration",
		"cost_ceiling: 0":                   "line 1, column 15: cost_ceiling: want US dollars",
		"cost_ceiling: -1":                  "want US dollars",
		"a: &x 1\nb: *x":                    "line 2, column 4: an alias is not understood here",
		"method: 2026-01-01":                "the type !!timestamp is not supported here",
		"1: 2":                              "line 1, column 1: a key must be plain text",
		"rounds: 1\n---\nrounds: 2":         "more than one document",
		"rounds: [":                         "line 1",
		"\trounds: 1":                       "cannot start any token",
		"prices: [{input: 1, output: 2}]":   "prices[0]: this price has no model",
		"prices: [{model: m, output: -2}]":  "prices[0]: want US dollars per million tokens",
		"judge: {model: x}":                 "line 1, column 8: judge: want a provider:",
		"judge: {provider: acme, model: x}": "line 1, column 19: judge.provider: want openai",
	} {
		_, err := Parse([]byte(doc))
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%q: %v, want %s", doc, err, want)
	}
}

// TestRefusedSeats: in each panel the second of two seats, in line 3, is wrong.
func TestRefusedSeats(t *testing.T) {
	const ok = "panel:\n  - {id: a, provider: offline}\n  - "
	for seat, want := range map[string]string{
		"{provider: offline}":                                                           "line 3, column 5: panel[1]: this seat has no id",
		"{id: a, provider: offline}":                                                    `line 3, column 10: panel[1].id: "a" is the id of an earlier seat, too`,
		"{id: \"a\\u0001b\", provider: offline}":                                        "panel[1].id:",
		"{id: b}":                                                                       "panel[1]: want a provider:",
		"{id: b, provider: openai}":                                                     "panel[1]: want the name of a model",
		"{id: b, provider: offline, model: x}":                                          "the provider offline takes no model",
		"{id: b, provider: offline, key: {env: X}}":                                     "the provider offline takes no model",
		"{id: b, provider: compatible, model: x}":                                       "needs a base_url",
		"{id: b, provider: openai, model: x, base_url: 'ftp://x'}":                      "panel[1].base_url: want an http or https URL",
		"{id: b, provider: openai, model: x, base_url: 'https://u:p@x/'}":               "want a URL without user",
		"{id: b, provider: openai, model: x, base_url: 'http://x/'}":                    "panel[1].base_url: want https: http would send the key unencrypted",
		"{id: b, provider: compatible, model: x, base_url: 'http://x/', key: {env: K}}": "unencrypted",
		"{id: b, provider: openai, model: x, base_url: 'https://x/?key=1'}":             "want a URL without user",
		"{id: b, provider: openai, model: x, key: sk-secret}":                           "line 3, column 46: panel[1].key: want keys and values",
		"{id: b, provider: openai, model: x, key: {}}":                                  "panel[1].key: want either env or file",
		"{id: b, provider: openai, model: x, key: {env: A, file: b}}":                   "want either env or file",
		"{id: b, provider: openai, model: x, key: {env: sk-secret}}":                    "never the key itself",
		"{id: b, provider: openai, model: x, temperature: 3}":                           "panel[1].temperature: want 0 to 2",
		"{id: b, provider: openai, model: x, top_p: 0}":                                 "panel[1].top_p",
		"{id: b, provider: openai, model: x, temperature: -0.1}":                        "panel[1].temperature: want 0 to 2",
		"{id: b, provider: openai, model: x, top_p: 1.1}":                               "panel[1].top_p",
		"{id: b, provider: openai, model: x, max_tokens: -1}":                           "panel[1].max_tokens",
		"{id: b, provider: openai, model: x, attempts: 99}":                             "panel[1].attempts",
		"{id: b, provider: openai, model: x, requests_per_minute: -1}":                  "panel[1].requests_per_minute",
		"{id: b, provider: openai, model: x, price: {input: -1, output: 1}}":            "panel[1].price",
		"{id: b, provider: openai, model: x, substitute: {provider: openai}}":           "panel[1].substitute: want the name of a model",
		"{id: b, provider: openai, model: x, substitute: {id: c}}":                      "panel[1].substitute.id: unknown key",
		"{id: b, provider: openai, modell: x}":                                          "line 3, column 31: panel[1].modell: unknown key",
	} {
		_, err := Parse([]byte(ok + seat))
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%q: %v, want %s", seat, err, want)
		must.Hold(t, err == nil || !strings.Contains(err.Error(), "sk-secret"), "%q: the error repeats the key: %v", seat, err)
	}
}

// TestWishes: a flag or an environment variable overrides the file.
func TestWishes(t *testing.T) {
	keys := env("FIRST_KEY", "k", "OPENAI_API_KEY", "o", "GEMINI_API_KEY", "g")
	method, rounds, threshold, collaborative, ceiling := "final_judge", 0, 1.0, true, 2.5
	p := plan(t, whole, Wishes{Method: &method, Rounds: &rounds, Threshold: &threshold, Collaborative: &collaborative, CostCeiling: &ceiling}, keys)
	must.Hold(t, p.Method == jury.FinalJudge && p.Rounds == 0 && p.Threshold == 1 && p.Collaborative && p.CostCeiling == 2_500_000, "%+v", p)
	must.Hold(t, p.Judge.Model == "gemini-2.5-pro" && p.Judge.ID == "final-judge" && p.Judge.Secret == "g", "%+v", p.Judge)
	for model, want := range map[string]string{"gemini-2.5-flash": "gemini g", "gpt-4.1": "openai o", "o3": "openai o", "some-model": "gemini g"} {
		p = plan(t, whole, Wishes{Method: &method, JudgeModel: model}, keys)
		got := string(p.Judge.Provider) + " " + p.Judge.Secret
		must.Hold(t, got == want && p.Judge.Model == model, "judge %s: %s %s, want %s", model, got, p.Judge.Model, want)
	}
	own := "judge: {provider: compatible, model: x, base_url: 'http://127.0.0.1:1/v1'}"
	if p = plan(t, own, Wishes{JudgeModel: "gpt-oss:20b"}, keys); p.Judge.Provider != Compatible || p.Judge.Model != "gpt-oss:20b" {
		t.Errorf("the judge's provider must stay compatible: such a server may serve a model of any name: %+v", p.Judge)
	}
	for _, bad := range []float64{-1, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 2e6} {
		_, err := NewPlan(&File{}, Wishes{CostCeiling: &bad}, keys)
		must.Hold(t, err != nil && strings.Contains(err.Error(), "leave it out for no ceiling"), "a ceiling of %v: %v", bad, err)
	}
}

// TestWhoSits: without any key, rules sit; with at least one key, models sit. The file names a substitute, or the only model that can be
// asked is one.
func TestWhoSits(t *testing.T) {
	p := plan(t, "", Wishes{}, env("OPENAI_API_KEY", "  "))
	must.Hold(t, p.Offline && strings.Contains(p.Why, "no key"), "without keys: %+v", p)
	_, err := NewPlan(&File{}, Wishes{Jurors: LLM}, env())
	must.Hold(t, errors.Is(err, ErrNoKey) && strings.Contains(err.Error(), "OPENAI_API_KEY is not set"), "models without keys: %v", err)
	p = plan(t, "", Wishes{Jurors: Offline}, env("OPENAI_API_KEY", "a"))
	must.Hold(t, p.Offline, "the caller asked for offline jurors, and got models")
	p = plan(t, "jurors: offline", Wishes{Jurors: LLM}, env("OPENAI_API_KEY", "a"))
	must.Hold(t, !p.Offline, "the flag must override the file")
	rulesOnly := "panel:\n - {id: a, provider: offline}\n - {id: b, provider: offline}"
	substituted := "panel:\n - {id: a, provider: openai, model: gpt-4o, substitute: {provider: offline}}\n - {id: b, provider: offline}"
	halfEmpty := "panel:\n - {id: a, provider: openai, model: gpt-4o}\n - {id: b, provider: offline}\n - {id: c, provider: offline}"
	for _, tt := range []struct {
		doc  string
		told Kind
		key  string
		want bool
	}{
		{"", "", "", true}, {"", Offline, "", false}, {"jurors: offline", "", "", false}, {"", "", "k", false},
		{rulesOnly, "", "", false}, {substituted, "", "", true}, {substituted, Offline, "", false}, {substituted, "", "k", false},
		{halfEmpty, "", "", true}, {halfEmpty, "", "k", false},
	} {
		if p := plan(t, tt.doc, Wishes{Jurors: tt.told}, env("OPENAI_API_KEY", tt.key)); p.NoModel != tt.want || tt.want && len(p.MissingKeys()) == 0 {
			t.Errorf("%q, told %q, key %q: no model: %t, want %t; missing %v", tt.doc, tt.told, tt.key, p.NoModel, tt.want, p.MissingKeys())
		}
	}
	for _, doc := range []string{rulesOnly, substituted, halfEmpty} {
		must.Refuse(t, "no language model", doc, "the caller asked for models and the panel has none")(NewPlan(parse(t, doc), Wishes{Jurors: LLM}, env()))
	}
	p = plan(t, whole, Wishes{}, env("ANTHROPIC_API_KEY", "b"))
	if c := p.Seats[0]; c.Provider != Anthropic || c.Secret != "b" || c.InPlaceOf != "openai gpt-4.1" || c.Role != "Policy (substitute for openai gpt-4.1)" || c.ID != "first" {
		t.Errorf("a substitute: %+v", c)
	}
	must.Refuse(t, "only one can be asked", "a substitute without a key")(NewPlan(parse(t, whole), Wishes{}, env()))
	rules := "panel:\n - {id: a, provider: openai, model: gpt-4o, substitute: {provider: offline}}\n - {id: b, provider: offline}"
	c := plan(t, rules, Wishes{}, env()).Seats[0]
	must.Hold(t, c.Provider == Rules && c.Role == "(substitute for openai gpt-4o)", "rules as a substitute: %+v", c)
}

// TestKeyFiles: a key file is read only if other users cannot read it. An empty file contains no key.
func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, []byte(content), mode))
		must.Do(t, os.Chmod(file, mode))
		return file
	}
	member := func(file string) *Member { return &Member{Provider: OpenAI, Model: "m", Key: &Key{File: file}} }
	key, from, err := member(write("good", "k-2\n", 0o600)).key(nil)
	must.Hold(t, err == nil && key == "k-2" && strings.HasSuffix(from, "good"), "%q, %q, %v", key, from, err)
	key, _, err = member(write("marked", "\ufeffk-2\r\n", 0o600)).key(nil)
	must.Hold(t, err == nil && key == "k-2", "after a byte order mark: %q, %v", key, err)
	_, _, err = member(write("empty", " \n", 0o600)).key(nil)
	must.Hold(t, errors.Is(err, ErrNoKey), "empty: %v", err)
	_, _, err = member(filepath.Join(dir, "none")).key(nil)
	must.Hold(t, errors.Is(err, ErrNoKey), "no file: %v", err)
	_, _, err = member(dir).key(nil)
	must.Hold(t, err != nil && !errors.Is(err, ErrNoKey), "a folder: %v", err)
	_, _, err = member(write("long", strings.Repeat("k", maxKey+1), 0o600)).key(nil)
	must.Hold(t, err != nil && !errors.Is(err, ErrNoKey), "a long file: %v", err)
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o666} {
		open := write("open", "k-3", mode)
		_, _, err := member(open).key(nil)
		must.Hold(t, err != nil && !errors.Is(err, ErrNoKey) && strings.Contains(err.Error(), "can be read by others"), "mode %o: %v", mode, err)
		doc := "judge: {provider: openai, model: m, key: {file: " + open + "}}"
		must.Refuse(t, "", "mode", mode, "a plan was made")(NewPlan(parse(t, doc), Wishes{}, env("OPENAI_API_KEY", "x")))
	}
}

// TestUnpriced: Unpriced names the models without a price. A vendor's price does not apply to a compatible server.
func TestUnpriced(t *testing.T) {
	doc := "panel:\n - {id: a, provider: openai, model: new-model}\n - {id: b, provider: compatible, model: gpt-4o, base_url: 'http://x/v1'}\n" +
		" - {id: c, provider: gemini, model: other}\n - {id: d, provider: offline}\nmethod: majority_vote"
	got := plan(t, doc, Wishes{}, env("OPENAI_API_KEY", "x")).Unpriced()
	want := "a (openai new-model), b (compatible gpt-4o)"
	must.Hold(t, strings.Join(got, ", ") == want, "%v, want %s", got, want)
	if got := plan(t, doc+"\nprices: [{model: new-model, input: 1, output: 1}, {model: gpt-4o, input: 0, output: 0}]", Wishes{}, env("OPENAI_API_KEY", "x")).Unpriced(); got != nil {
		t.Errorf("%v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("panel: [{id: a, key: {env: X}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("rounds: !!int \"3\""))
	f.Add([]byte("<<: {rounds: 1}"))
	f.Add([]byte("? {a: 1}\n: 2"))
	f.Add([]byte("method: !!binary aGk="))
	f.Fuzz(func(t *testing.T, doc []byte) {
		file, err := Parse(doc)
		if err != nil {
			return
		}
		for _, seats := range [][]Seat{file.Panel.Seats, file.Seats} {
			must.Hold(t, len(seats) != 1 && len(seats) <= maxSeats, "a panel of %d", len(seats))
		}
		// A file that is accepted gives a plan or an error that says why not.
		_, err = NewPlan(file, Wishes{}, func(name string) string { return "" })
		must.Hold(t, err == nil || !strings.Contains(err.Error(), "panic"), "%v", err)
	})
}

// TestDocumentation: the example in docs/configuration.md is accepted, and contains every setting.
func TestDocumentation(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/configuration.md"))(t)
	_, example, found := strings.Cut(string(doc), "```yaml\n")
	example, _, ended := strings.Cut(example, "```")
	must.Need(t, found && ended, "there is no example")
	plan(t, example, Wishes{}, env("TEAM_OPENAI_KEY", "k"))
	var missing []string
	var visit func(reflect.Type)
	visit = func(s reflect.Type) {
		for s.Kind() == reflect.Pointer || s.Kind() == reflect.Slice {
			s = s.Elem()
		}
		if s.Kind() != reflect.Struct {
			return
		}
		for i := range s.NumField() {
			f := s.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(example, name+":") {
				missing = append(missing, name)
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[File]())
	must.Len(t, missing, 0)
}

// TestPanels: panel is a word or a list, flags come before the file, and rounds follow from the care unless they are given.
func TestPanels(t *testing.T) {
	keys := env("OPENAI_API_KEY", "a", "ANTHROPIC_API_KEY", "b", "GOOGLE_API_KEY", "c")
	list := "[{id: a, provider: offline}, {id: b, provider: openai, model: m}]"
	for doc, want := range map[string]struct {
		wish   Care
		care   Care
		seats  int
		rounds int
	}{
		"":                                    {"", Thorough, 3, 3},
		"panel: quick":                        {"", Quick, 3, 2},
		"panel: thorough":                     {Quick, Quick, 3, 2},
		"panel: quick\nrounds: 5":             {"", Quick, 3, 5},
		"panel: " + list:                      {"", Thorough, 2, 3},
		"seats: " + list + "\npanel: quick":   {"", Quick, 2, 2},
		"seats: " + list + "\nmethod: median": {"", Thorough, 2, 3},
	} {
		p := plan(t, doc, Wishes{Care: want.wish}, keys)
		must.Hold(t, p.Care == want.care && len(p.Seats) == want.seats && p.Rounds == want.rounds,
			"%q: %s, %d seats, %d rounds", doc, p.Care, len(p.Seats), p.Rounds)
	}
	for doc, want := range map[string]string{
		"panel: slow":                            "line 1, column 8: panel: want thorough, quick or a list of seats",
		"panel: 7":                               "line 1, column 8: panel: want",
		"panel: {id: a}":                         "line 1, column 8: panel: want",
		"panel: [{id: a, provder: openai}]":      "panel[0].provder: unknown key",
		"seats: [{id: a, provider: offline}]":    "line 1, column 8: seats: 1 seats: want 2 to 12",
		"panel: " + list + "\nseats: " + list:    "line 2, column 8: seats: the panel is a list of seats, too",
		"rubric: [{axis: a, max: 1, levels: 3}]": "rubric[0].levels: want a list",
	} {
		_, err := Parse([]byte(doc))
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%q: %v, want %s", doc, err, want)
	}
}

// TestLevels: for models every axis has levels, whatever the file says of it, and such a rubric is valid. Rules get none.
func TestLevels(t *testing.T) {
	doc := "rubric: [{axis: task_completion, max: 40}, {axis: style, max: 2, description: d}, {axis: safety, max: 50, description: Mine.}, " +
		"{axis: own, max: 8, description: o, levels: [{points: 1, description: no}, {points: 8, description: yes}]}]"
	p := plan(t, doc, Wishes{}, env("OPENAI_API_KEY", "a"))
	var got []string
	for _, axis := range p.Rubric {
		for _, l := range axis.Levels {
			got = append(got, fmt.Sprint(axis.ID, l.Points))
		}
	}
	must.Equal(t, strings.Join(got, " "), "task_completion0 task_completion14 task_completion28 task_completion40 style0 style1 style2 safety0 safety16 safety33 safety50 own1 own8")
	must.Hold(t, p.Rubric[0].Levels[3].Description == jury.LeveledRubric()[0].Levels[3].Description && p.Rubric[2].Levels[3].Description == "It holds throughout.",
		"%+v", p.Rubric)
	s := jury.Settings{Seats: []jury.Seat{{JurorID: "a"}, {JurorID: "b"}}, Rubric: p.Rubric, Method: jury.MajorityVote}
	must.Want(t, s.Validate(), nil)
	for _, axis := range plan(t, doc, Wishes{Jurors: Offline}, env()).Rubric {
		must.Hold(t, axis.Levels == nil, "rules have levels: %+v", axis)
	}
}

const hooked = `rounds: 1
webhook: {url: 'https://hooks.example/x', secret: {env: PAGER}, old_secret: {env: OLD_PAGER}}
`

// TestRefusedWebhook: an error about the section gives the place of the mistake. The key continuous, which earlier programs had, is refused with what to use instead.
func TestRefusedWebhook(t *testing.T) {
	f, err := Parse([]byte(hooked))
	must.Need(t, err == nil && f.Webhook.URL == "https://hooks.example/x", "%+v, %v", f, err)
	for change, want := range map[string]string{
		"url: 'https=url: 'http":                        "line 2, column 16: webhook.url: want https",
		"https://hooks.example/x=https://127.0.0.1/x":   "webhook.url: the address is not one of the public Internet",
		"secret: {env: PAGER}=secret: {env: whsec_abc}": "never the key itself",
		", secret: {env: PAGER}=":                       "webhook: want secret:",
		"url:=id: pager, url:":                          "webhook.id: unknown key",
		"rounds: 1=continuous: {sampled: 1}":            "line 1, column 1: continuous: unknown key: use webhook: it is told when a case needs a person; 'jurat trial --recorded CHAIN' tries records",
	} {
		from, to, _ := strings.Cut(change, "=")
		doc := strings.Replace(hooked, from, to, 1)
		must.Need(t, doc != hooked, "%s changes nothing", change)
		must.Refuse(t, want, change)(Parse([]byte(doc)))
	}
}

// TestReceiver: a webhook's secrets are found where the file says, and stay out of errors.
func TestReceiver(t *testing.T) {
	f := must.Get(Parse([]byte(hooked)))(t)
	const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	must.Fail(t, nil)(f.Webhook.Receiver(env("PAGER", good, "OLD_PAGER", good)))
	must.Fail(t, ErrNoKey)(f.Webhook.Receiver(env("PAGER", good)))
	_, err := f.Webhook.Receiver(env("PAGER", "not-a-secret", "OLD_PAGER", good))
	must.Hold(t, err != nil && !strings.Contains(err.Error(), "not-a-secret"), "a malformed secret: %v", err)
	file := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(good+"\n"), 0o600))
	f.Webhook.Secret, f.Webhook.Old = &Key{File: file}, nil
	must.Fail(t, nil)(f.Webhook.Receiver(env()))
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/api"
	"jurat/internal/browsertest"
	"jurat/internal/llm/llmtest"
	"jurat/jury"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// TestContinuous: a server tries what a witness draws and what it samples, before its own jury, shows what it owes, and tells a webhook when
// the verdicts take an agent's reputation over a threshold, and below it again. All of it survives a restart.
func TestContinuous(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data}, args...)...) + "\n"
	}
	log := watchedLog(data)
	log.grow(t, 14, "one") // by the courier
	log.growBy(t, "another", 50, "filler")
	plain := write(t, filepath.Join(folder, "plain.json"), jurat(0, "trust"))
	key := doing(t, 0, "witness", "init", "witness.example/w1", "--dir", filepath.Join(folder, "w1"))
	witness, _, _ := serve(t, "witness", "serve", "--dir", filepath.Join(folder, "w1"), "--addr", "127.0.0.1:0", "--log", plain)
	jurat(0, "log", "witness", "add", witness, "--key", key, "--quorum", "1")
	token := strings.TrimSpace(jurat(0, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	hook := newHook(t)
	var unsafe atomic.Bool
	settings := write(t, filepath.Join(folder, "continuous.yaml"), modelsThatFind(t, folder, &unsafe)+`
rounds: 1
cost_ceiling: 0.5
continuous:
  agents: [courier]
  drawn: 2
  sampled: 1
  trials_a_day: 30
  dollars_a_day: 40
  wait: 1ms
  records: 1
  thresholds: [{agent: courier, percent: 60}]
  webhooks: [{id: pager, url: '`+hook.url+`', inward: true, secret: {file: '`+write(t, filepath.Join(folder, "hook.secret"), hookSecret+"\n")+`'}}]
`)
	open := []string{"--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--continuous", settings}

	url, _, stop := serve(t, open...)
	await := func(what string, is func(*api.ContinuousTrial) bool) api.ContinuousTrial {
		t.Helper()
		return awaitStatus(t, url+"/v1/continuous-trial", token, what, is)
	}
	settled := func(trials int, side string) func(*api.ContinuousTrial) bool {
		return func(s *api.ContinuousTrial) bool {
			return s.Trials == trials && s.Owed == 0 && len(s.Missing) == 0 && len(s.Faults) == 0 && len(s.Webhooks) == 1 && s.Webhooks[0].Waiting == 0 &&
				len(s.Thresholds) == 1 && s.Thresholds[0].Side == side &&
				s.Thresholds[0].Lower != nil // until witnesses have cosigned the newest judgments there are no bounds, and the side is the last that the log has
		}
	}
	first := await("every record of the courier is tried once, and its reputation is above the threshold", settled(14, "above"))
	if first.Micro <= 0 || first.Micro > 14*500_000 || *first.Thresholds[0].Lower < 6000 {
		t.Errorf("%+v", first)
	}
	if out := jurat(0, "log", "draw", "list", "--share", "2", "--agent", "courier"); strings.Contains(out, "NOT") {
		t.Errorf("a stranger still sees debts:\n%s", out)
	}
	if metrics := readAs(t, token, url+"/metrics"); !strings.Contains(metrics, "\njurat_continuous_debts 0\n") || !strings.Contains(metrics, `jurat_reputation_lower{agent="courier",class="models"`) {
		t.Error(metrics)
	}
	t.Run("pages", func(t *testing.T) {
		lookAt(t, strings.TrimSpace(jurat(0, "access", "link", "eve", "--role", "auditor", "--at", url)), url)
	})
	stop()
	unsafe.Store(true)
	log.grow(t, 6, "two")
	var stderr *lines
	url, stderr, stop = serve(t, open...)
	await("six failures later the reputation is across the threshold", settled(20, "across"))
	if code := stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if heard := hook.heard(); len(heard) != 2 || heard[0] != "courier models none above" || heard[1] != "courier models above across" {
		t.Errorf("heard %q", heard)
	}
}

// modelsThatFind starts the vendors' servers, and returns a panel of them. All find the agent safe, or unsafe.
func modelsThatFind(t *testing.T, folder string, unsafe *atomic.Bool) string {
	t.Helper()
	safely, unsafely := finds(jury.SafePass, 90), finds(jury.UnsafeFail, 10)
	script := func(c llmtest.Call) llmtest.Reply {
		if unsafe.Load() {
			return unsafely(c)
		}
		return safely(c)
	}
	doc := "jurors: llm\npanel:\n"
	for i, vendor := range seatVendors {
		server := llmtest.New(t, vendor, script)
		file := write(t, filepath.Join(folder, seatIDs[i]+".key"), server.Key)
		member := fmt.Sprintf("{id: %s, provider: %s, model: %s, base_url: '%s', key: {file: '%s'}}", seatIDs[i], providers[i], seatModels[i], server.URL, file)
		if i == len(seatVendors)-1 {
			doc += "judge: " + member + "\n"
		} else {
			doc += "  - " + member + "\n"
		}
	}
	return doc
}

// A hook is a receiver of messages, which it checks as the convention's own library does.
type hook struct {
	url string
	mu  sync.Mutex
	all []string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := new(hook)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		if err != nil || failed != nil || by.Verify(body, r.Header) != nil {
			t.Errorf("a message that is not signed: %s, %v", body, err)
		}
		var m struct {
			Data struct {
				Page     string `json:"page"`
				Crossing struct {
					Agent string `json:"agent"`
					Class string `json:"class"`
					From  string `json:"from"`
					To    string `json:"to"`
				} `json:"crossing"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &m); err != nil || !strings.HasSuffix(m.Data.Page, "/agents/courier") {
			t.Errorf("%s: %v", body, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, strings.Join([]string{m.Data.Crossing.Agent, m.Data.Crossing.Class, m.Data.Crossing.From, m.Data.Crossing.To}, " "))
	}))
	t.Cleanup(server.Close)
	h.url = server.URL + "/hook"
	return h
}

func (h *hook) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

func awaitStatus(t *testing.T, url, token, what string, is func(*api.ContinuousTrial) bool) api.ContinuousTrial {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var status api.ContinuousTrial
		body := readAs(t, token, url)
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if is(&status) {
			return status
		}
		if time.Now().After(until) {
			t.Fatalf("%s: %s", what, body)
		}
	}
}

// lookAt opens the pages as a person who has signed in sees them: that of the continuous trial, and that of an agent with a number.
func lookAt(t *testing.T, link, url string) {
	b := browsertest.Open(t, browsertest.Options{})
	b.Visit(link)
	b.Enter("main button")
	b.Wait(`location.pathname === "/" && document.readyState === "complete"`)
	for lang, want := range map[string]string{"en": "Continuous trial", "ja": "継続的な審理", "ru": "Непрерывное разбирательство"} {
		b.Visit(url + "/continuous-trial?lang=" + lang)
		if text := b.Text("main"); !strings.Contains(text, want) || !strings.Contains(text, "courier") || !strings.Contains(text, "60.00 %") || strings.Contains(text, "{") {
			t.Errorf("%s:\n%s", lang, text)
		}
		b.Screenshot("continuous-" + lang)
		b.Visit(url + "/agents/courier?lang=" + lang)
		if text := b.Text("main"); !strings.Contains(text, "courier") || strings.Contains(text, "{") || !browsertest.Eval[bool](b, `document.querySelector("figure.bounds polyline.lower") !== null`) {
			t.Errorf("%s:\n%s", lang, text)
		}
		b.Screenshot("agent-" + lang)
	}
	for _, problem := range b.Problems() {
		t.Errorf("in the console: %s", problem)
	}
}

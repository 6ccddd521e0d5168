package observe_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/internal/llm"
	"jurat/internal/llm/llmtest"
	"jurat/internal/observe"
)

// A tap keeps the last exchange that passes it.
type tap struct{ call observe.Call }

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(request))
	t.call = observe.Call{Protocol: observe.Protocol(r.Method, r.URL.Path), Path: r.URL.Path, Request: request, RequestType: r.Header.Get("Content-Type")}
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer w.Body.Close()
	response, err := io.ReadAll(w.Body)
	t.call.Status, t.call.Response, t.call.ResponseType = w.StatusCode, response, w.Header.Get("Content-Type")
	w.Body = io.NopCloser(io.MultiReader(bytes.NewReader(response), failing{err}))
	return w, nil
}

// failing is a body that ends with an error, or with nil as others do.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// TestServers: what the jury's own calls ask and get, through servers that speak the vendors' protocols, is what the bytes say.
func TestServers(t *testing.T) {
	question := llm.Question{System: "Be <kind>.", Messages: []llm.Message{{Text: "証拠 \u2028?"}, {ByModel: true, Text: "{}"}, {Text: "Again."}}}
	prompt := []map[string]string{{"role": "system", "content": "Be <kind>."}, {"role": "user", "content": "証拠 \u2028?"}, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "Again."}}
	for _, vendor := range llmtest.Vendors {
		for f := llmtest.Nothing; f <= llmtest.NoSchemas; f++ {
			if f == llmtest.Closed || f == llmtest.Redirected || f == llmtest.EchoedKey {
				continue // no response; one that is followed; one whose key an adapter hides
			}
			passed := new(tap)
			server := llmtest.New(t, vendor, llmtest.Always(llmtest.Reply{Text: "It <is> so. 証", Model: "m-1.5-2026-01-01", Failure: f}))
			config := server.Config(llm.Settings{Model: "m-1.5", MaxTokens: 900})
			config.HTTP = &http.Client{Transport: passed}
			model, err := llm.New(strings.ToLower(vendor.Name), config)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := model.Ask(t.Context(), question)
			p := project(t, passed.call)
			if form(t, p.Prompt) != form(t, marshal(t, prompt)) || p.Model != "m-1.5" {
				t.Errorf("%s, failure %d: model %q, prompt %s", vendor, f, p.Model, p.Prompt)
			}
			var failure *llm.Error
			switch errors.As(err, &failure); {
			case err == nil:
				var said string
				if e := json.Unmarshal(p.Output, &said); e != nil || said != answer.Text || p.ModelVersion != answer.Model || p.Finish != answer.FinishReason || p.Usage == nil || !p.Complete || p.Error != "" || p.Problem != "" {
					t.Errorf("%s, failure %d: %+v\nwant %+v", vendor, f, p, answer)
				}
			case failure == nil:
				t.Fatal(err)
			case passed.call.Status >= 300:
				if p.Error == "" || p.Output != nil || failure.Detail != "" && !strings.Contains(failure.Detail, strings.TrimSpace(p.Error[strings.Index(p.Error, ":")+1:])) {
					t.Errorf("%s, failure %d: %+v\nwant %v", vendor, f, p, failure)
				}
			case p.State != observe.Failed: // a refusal, or an answer that was cut off
				if p.Finish != failure.Answer.FinishReason || p.ModelVersion != failure.Answer.Model {
					t.Errorf("%s, failure %d: %+v\nwant %+v", vendor, f, p, failure.Answer)
				}
			case p.Problem == "" || p.Output != nil:
				t.Errorf("%s, failure %d: %+v", vendor, f, p)
			}
		}
	}
}

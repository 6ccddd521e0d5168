package llmtest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"jurat/internal/llm"
)

// canned is an HTTP transport that gives every request the same answer.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// FuzzResponse: any response gives an answer with text and a plausible number of tokens, or an error of a documented
// kind.
func FuzzResponse(f *testing.F) {
	kinds := map[llm.Kind]bool{llm.Refused: true, llm.RateLimited: true, llm.Unauthorised: true, llm.NotFound: true, llm.Unavailable: true, llm.Malformed: true, llm.TooLong: true}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		for _, a := range adapters {
			m, err := a.make(llm.Config{BaseURL: "http://127.0.0.1", Key: "some-long-key", Settings: some, HTTP: &http.Client{Transport: canned{status, body}}})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := m.Ask(t.Context(), question)
			var e *llm.Error
			switch {
			case err == nil:
				if status >= 300 || answer.Text == "" || answer.Usage.Input < answer.Usage.Cached || answer.Usage.Output < answer.Usage.Reasoning {
					t.Errorf("%s: status %d gives %+v", a, status, answer)
				}
			case !errors.As(err, &e) || !kinds[e.Kind]:
				t.Errorf("%s: %v", a, err)
			}
		}
	})
}

package llm

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Config is where a model is asked, and with what. Every adapter makes a Model of one.
type Config struct {
	BaseURL  string // "": the vendor's own
	Key      string
	Settings Settings
	HTTP     *http.Client // nil: one with the defaults
}

// Check refuses what no provider can be asked with, and fills in the base URL. Its errors hold no key.
func (c Config) Check(vendorURL string) (Config, error) {
	if c.BaseURL == "" {
		c.BaseURL = vendorURL
	}
	at, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return c, errors.New("base URL: want an http or https URL") // it may hold a password: not shown
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return c, errors.New("base URL: want no user, password, query or fragment in it")
	}
	// A key that HTTP cannot carry is one that was copied wrongly.
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, errors.New("key: it holds a character that no key has, such as a space or a line break")
	}
	return c, c.Settings.Check()
}

// Check refuses settings that mean nothing to any model.
func (s Settings) Check() error {
	switch {
	case s.Model == "":
		return errors.New("model: it is empty")
	case s.Temperature != nil && !(*s.Temperature >= 0 && *s.Temperature <= 2):
		return fmt.Errorf("temperature: %v is not from 0 to 2", *s.Temperature)
	case s.TopP != nil && !(*s.TopP > 0 && *s.TopP <= 1):
		return fmt.Errorf("top_p: %v is not above 0 and at most 1", *s.TopP)
	case s.MaxTokens < 0 || s.MaxTokens > math.MaxInt32:
		return fmt.Errorf("max_tokens: %d is out of range", s.MaxTokens)
	}
	return nil
}

// Check refuses a question that no vendor's protocol can carry.
func (q Question) Check() error {
	if len(q.Messages) == 0 {
		return Fail(Malformed, 0, "the question holds no message")
	}
	for i, m := range q.Messages {
		if m.ByModel != (i%2 == 1) {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: the user and the model take turns, the user first", i))
		}
		if strings.TrimSpace(m.Text) == "" {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: it is empty", i))
		}
	}
	if q.Messages[len(q.Messages)-1].ByModel {
		return Fail(Malformed, 0, "the last message is the model's own")
	}
	return q.Schema.check()
}

const maxSchemaName = 64 // as OpenAI has it

func (s Schema) check() error {
	if s.JSON == nil && s.Name == "" {
		return nil // any text will do
	}
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if s.Name == "" || len(s.Name) > maxSchemaName || strings.ContainsFunc(s.Name, odd) {
		return Fail(Malformed, 0, fmt.Sprintf("schema: %q is no name of one", s.Name))
	}
	if !s.JSON.IsValid() || s.JSON.Kind() != jsontext.KindBeginObject {
		return Fail(Malformed, 0, "schema: it is no JSON object")
	}
	return nil
}

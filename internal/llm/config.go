package llm

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Config holds the address, the key and the settings for one model. Every adapter makes a Model from one.
type Config struct {
	BaseURL  string // "": the vendor's own
	Key      string
	Settings Settings
	HTTP     *http.Client // nil: one with the defaults
}

// check returns an error for an address and a key that no provider can use, and fills in the base URL. Its errors never hold the key.
// Package config has checked the settings.
func (c Config) check(vendorURL string) (Config, error) {
	if c.BaseURL == "" {
		c.BaseURL = vendorURL
	}
	at, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return c, errors.New("base URL: want an http or https URL") // the URL may hold a password, so the error does not show it
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return c, errors.New("base URL: want no user, password, query or fragment in it")
	}
	// A key with a character that HTTP cannot carry was copied incorrectly.
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, errors.New("key: it contains a character that keys never have, such as a space or a line break")
	}
	return c, nil
}

// Check returns an *Error for a question that no vendor's protocol can carry.
func (q Question) Check() error {
	if len(q.Messages) == 0 {
		return Fail(Malformed, 0, "the question has no message")
	}
	for i, m := range q.Messages {
		if m.ByModel != (i%2 == 1) {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: the user and the model must alternate, and the user must be first", i))
		}
		if Blank(m.Text) {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: empty", i))
		}
	}
	if q.Messages[len(q.Messages)-1].ByModel {
		return Fail(Malformed, 0, "the last message is the model's own")
	}
	return q.Schema.check()
}

const maxSchemaName = 64 // OpenAI's limit

func (s Schema) check() error {
	if s.JSON == nil && s.Name == "" {
		return nil // any text is accepted
	}
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if s.Name == "" || len(s.Name) > maxSchemaName || strings.ContainsFunc(s.Name, odd) {
		return Fail(Malformed, 0, fmt.Sprintf("schema: %q is not a valid name", s.Name))
	}
	if !s.JSON.IsValid() || s.JSON.Kind() != jsontext.KindBeginObject {
		return Fail(Malformed, 0, "schema: not a JSON object")
	}
	return nil
}

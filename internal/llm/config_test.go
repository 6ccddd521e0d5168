package llm

import (
	"strings"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Key = "" }, ""},
		{func(c *Config) { c.BaseURL = "http://localhost:11434/v1" }, ""},
		{func(c *Config) { c.BaseURL = "ftp://host" }, "base URL"},
		{func(c *Config) { c.BaseURL = "host/v1" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://user:pass@host" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://host?key=1" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://host#x" }, "base URL"},
		{func(c *Config) { c.Key = "secret\n" }, "key"},
		{func(c *Config) { c.Key = "secret key" }, "key"},
		{func(c *Config) { c.Key = "secr\u00e9t" }, "key"},
	} {
		c := Config{Key: "secret", Settings: Settings{Model: "m"}}
		tt.change(&c)
		got, err := c.check("https://vendor")
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", c, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "secr") || strings.Contains(err.Error(), "pass@")) {
			t.Errorf("a secret is in %v", err)
		}
		if c.BaseURL == "" && got.BaseURL != "https://vendor" {
			t.Errorf("base URL %q", got.BaseURL)
		}
	}
}

func TestQuestionCheck(t *testing.T) {
	user, byModel := Message{Text: "x"}, Message{ByModel: true, Text: "y"}
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{Messages: []Message{user}}, ""},
		{Question{Messages: []Message{user, byModel, user}, Schema: Schema{"a_B-9", []byte(`{"type":"object"}`)}}, ""},
		{Question{}, "no message"},
		{Question{Messages: []Message{byModel}}, "must alternate"},
		{Question{Messages: []Message{user, user}}, "messages/1"},
		{Question{Messages: []Message{user, byModel}}, "model's own"},
		{Question{Messages: []Message{{Text: " "}}}, "empty"},
		{Question{Messages: []Message{user}, Schema: Schema{"", []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a b", []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{strings.Repeat("a", 65), []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", []byte(`[]`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", []byte(`{"a":1,"a":2}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", nil}}, "schema"},
	} {
		err := tt.q.Check()
		if (err == nil) != (tt.want == "") || err != nil && (KindOf(err) != Malformed || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.q, err, tt.want)
		}
	}
}

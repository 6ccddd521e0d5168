package llmtest

import (
	"net/http"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// TestStrict: the servers refuse requests outside a vendor's protocol, each for its own reason. Each differs in one
// place from a good request.
func TestStrict(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for _, tt := range []struct {
		vendor           Vendor
		path, good       string
		replace, by, why string
	}{
		{OpenAI, "/responses", `{"model":"m","store":false,"input":[{"role":"user","content":"x"}],"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":` + schema + `}}}`, "", "", ""},
		{OpenAI, "", "", `"model"`, `"seed":1,"model"`, "seed"},
		{OpenAI, "", "", `"m"`, `"m","model":"m"`, "duplicate"},
		{OpenAI, "", "", `"store":false,`, ``, "store"},
		{OpenAI, "", "", `"strict":true`, `"strict":false`, "strict"},
		{OpenAI, "", "", `,"additionalProperties":false`, ``, "additionalProperties"},
		{OpenAI, "", "", `["a"]`, `[]`, "required"},
		{OpenAI, "", "", `"type":"string"`, `"type":"string","minLength":1`, "minLength"},
		{OpenAI, "", "", `"user"`, `"model"`, "role"},
		{OpenAI, "", "", `,"schema":` + schema, ``, "schema"},
		{OpenAI, "", "", `"input":[`, `"input":[null,`, "null"},
		{Anthropic, "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`, "", "", ""},
		{Anthropic, "", "", `"max_tokens":9,`, ``, "max_tokens"},
		{Anthropic, "", "", `"type":"string"`, `"type":"integer","minimum":1`, "minimum"},
		{Anthropic, "", "", `"text":"x"`, `"text":""`, "block"},
		{Anthropic, "", "", `"output_config"`, `"output_format"`, "output_format"},
		{Anthropic, "", "", `,"schema":` + schema, ``, "schema"},
		{Anthropic, "", "", `}]}]`, `},{"text":"y"}]}]`, "type"},
		{Anthropic, "", "", `}]}]`, `},{"type":"text"}]}]`, "text"},
		{Gemini, "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"candidateCount":1,"responseMimeType":"application/json","responseJsonSchema":` + schema + `}}`, "", "", ""},
		{Gemini, "", "", `"responseMimeType":"application/json",`, ``, "responseMimeType"},
		{Gemini, "", "", `"candidateCount":1`, `"seed":4294967296`, "above"},
		{Gemini, "", "", `"user"`, `"assistant"`, "role"},
		{Gemini, "", "", `}]}]`, `},{}]}]`, "text"},
		{Gemini, "", "", `"type":"string"`, `"type":"string","pattern":"x"`, "pattern"},
		{Compatible, "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + schema + `}}}`, "", "", ""},
		{Compatible, "", "", `"name":"n",`, ``, "name"},
		{Compatible, "", "", `"model":"m"`, `"model":"m","stream":true`, "stream"},
		{Compatible, "", "", `"m"`, `""`, "no model"},
	} {
		good := good(tt.vendor.Name, tt.path, tt.good)
		body := good.body
		if tt.replace != "" {
			body = strings.Replace(body, tt.replace, tt.by, 1)
			must.Need(t, body != good.body, "%s is not in %s", tt.replace, body)
		}
		_, err := tt.vendor.decode(good.path, []byte(body))
		must.Hold(t, (tt.why != "" || err == nil) && (tt.why == "" || err != nil && strings.Contains(err.Error(), tt.why)),
			"%s: %s: %v, want %q", tt.vendor, body, err, tt.why)
		must.Refuse(t, "", tt.vendor, "another path is accepted")(tt.vendor.decode(good.path+"x", []byte(good.body)))
	}
}

type request struct{ path, body string }

var lastGood = map[string]request{}

// good returns the vendor's good request: the one given, or else the last one given.
func good(vendor, path, body string) request {
	if body != "" {
		lastGood[vendor] = request{path, body}
	}
	return lastGood[vendor]
}

// TestKeyInItsHeader: the servers accept a key in the vendor's header only.
func TestKeyInItsHeader(t *testing.T) {
	for vendor, h := range map[string]http.Header{
		"OpenAI": {"Authorization": {"Bearer k"}}, "Compatible": {"Authorization": {"Bearer k"}},
		"Anthropic": {"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}, "Gemini": {"X-Goog-Api-Key": {"k"}},
	} {
		for _, v := range Vendors {
			if err := v.headers(h, "k"); (err == nil) != (v.Name == vendor || strings.HasPrefix(h.Get("Authorization"), "B") && v.Name != "Anthropic" && v.Name != "Gemini") {
				t.Errorf("%s takes %v: %v", v, h, err)
			}
			if v.Name == vendor {
				twice := h.Clone()
				twice.Set("X-Other", "k")
				must.Hold(t, v.headers(twice, "k") != nil && v.headers(h, "other") != nil, "%s: a wrong key, or a key in two headers, was accepted", v)
			}
		}
	}
}

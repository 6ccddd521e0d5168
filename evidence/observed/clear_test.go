package observed_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
)

type call struct {
	Protocol, Path    string
	Status            int64
	Request, Response string
}

func factsOf(c call) observed.Facts {
	f, _ := observed.FactsOf(&evidence.Observed{Protocol: c.Protocol, Path: c.Path, Status: c.Status, Request: new(evidence.ObservedBody), Response: new(evidence.ObservedBody)}, []byte(c.Request), []byte(c.Response))
	return f
}

// TestPlain: no sentence, URL or name of a person with a space is one word.
func TestPlain(t *testing.T) {
	for _, text := range []string{"gpt-4.1-2026-01", "ft:gpt-4o-mini:org::id", "meta-llama/Llama-3.1-8B", "/models/llama", "claude-x@20260101", "text-bison@001", "@scope/package@1.2.3", "package@latest", "anthropic/claude@v2", "tools/call", "$/cancel", "resp_0", "mcp", "cachedContents/c1",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude", strings.Repeat("x", 128)} {
		if !observed.IsPlain(text) {
			t.Errorf("%q is a name", text)
		}
	}
	for _, text := range []string{"", " ", "/", "a b", "a\tb", "a\nb", "a\n", "a\u00a0b", "https://example.org/a", "//a", "a//b", "a/", "a,b", "a%20b", "a(b)", `a"b`, "Анна", "山田", "a\x00", "a\u202eb", "\xff", strings.Repeat("x", 129),
		"anna@example.org", "mailto:anna.m@example.org", "users/anna@mail.example.org/7", "491700000000@s.whatsapp.net", "@anna:matrix@example.org"} {
		if observed.IsPlain(text) {
			t.Errorf("%q is no name", text)
		}
	}
}

// TestPathInClear: of a path stands what is a name, and the rest keeps its place.
func TestPathInClear(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/": "/", "/v1/chat/completions": "/v1/chat/completions", "/v1beta/models/gemini-x:generateContent": "/v1beta/models/gemini-x:generateContent", "/model/anthropic.claude-v2%3A1/invoke": "/model/anthropic.claude-v2%3A1/invoke",
		"/v1/files/Anna%20was%20here": "/v1/files/*", "/v1/users/anna@example.org/runs": "/v1/users/*/runs", "/v1/users/anna%40example.org": "/v1/users/*", "/v1/Anna was here/chat/completions": "/v1/*/chat/completions", "//v1": "//v1", "/%e5%b1%b1": "/*", "/a%2": "/*",
	} {
		if got := observed.PathInClear(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestReferred: whoever looks is told which address, file and question are meant, but no secret in an address; the record names the kind alone.
func TestReferred(t *testing.T) {
	f := factsOf(call{Protocol: observed.GeminiGenerate, Path: "/v1/models/g:generateContent", Status: 200,
		Request:  `{"contents":[{"parts":[{"fileData":{"fileUri":"https://u:p@example.org/f?key=1"}},{"fileData":{"fileUri":"%zz"}}]}]}`,
		Response: `{"candidates":[{"groundingMetadata":{"webSearchQueries":["who is Anna? #1"],"groundingChunks":[{"web":{"uri":"https://example.org/a#b"}},{"web":{"uri":"https://example.org/a?c=1"}}]}}]}`})
	want := []string{"file:https://example.org/f", "file:(an address that is not valid)", "search:who is Anna? #1", "url:https://example.org/a"}
	if clear := []string{"file", "search", "url"}; !slices.Equal(f.Referred, want) || !slices.Equal(f.ContextByReference, clear) {
		t.Errorf("%q, %q", f.Referred, f.ContextByReference)
	}
}

// TestSettingsInClear: of a request's settings stand numbers, switches and words of a closed list, at any depth that a vendor has, and of counts the numbers.
func TestSettingsInClear(t *testing.T) {
	deep := strings.Repeat(`{"reasoning":`, 9) + `1` + strings.Repeat(`}`, 9)
	for request, want := range map[string]string{
		`"temperature":0.5,"seed":7,"stream":true,"stop":["a"],"user":5,"metadata":{"n":5}`:                            `{"seed":7,"stream":true,"temperature":0.5}`,
		`"seed":"a canary","temperature":"low","stream":null`:                                                          `{"stream":null,"temperature":"low"}`,
		`"tool_choice":{"type":"function","function":{"name":"find"}},"modalities":["text","audio"]`:                   `{"modalities":["text","audio"],"tool_choice":{"type":"function"}}`,
		`"modalities":["text","a canary"],"reasoning":["low",{"effort":"a canary"}]`:                                   `{"reasoning":["low",{}]}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`: `{"response_format":{"json_schema":{"strict":true},"type":"json_schema"}}`,
		`"reasoning":` + deep: `{"reasoning":` + strings.Repeat(`{"reasoning":`, 7) + `{}` + strings.Repeat(`}`, 7) + `}`,
		`"tools":[{"type":"function","function":{"name":"find"}},{"type":"function","function":{"name":"find a canary"}}]`: `{"tools":["find",""]}`,
	} {
		p := factsOf(call{Protocol: observed.OpenAIChat, Request: `{` + request + `,"messages":[]}`})
		if string(p.Parameters) != want {
			t.Errorf("%.200s: %s, want %s", request, p.Parameters, want)
		}
	}
	p := factsOf(call{Protocol: observed.OpenAIChat, Status: 200, Request: `{"messages":[]}`,
		Response: `{"choices":[{"finish_reason":"stop","message":{"content":"So."}}],"usage":{"total_tokens":7,"a canary":1,"kind":"a canary","service_tier":"standard","list":[{"modality":"TEXT","tokenCount":5}],"other":["a canary"]}}`})
	if want := `{"list":[{"modality":"TEXT","tokenCount":5}],"service_tier":"standard","total_tokens":7}`; string(p.Usage) != want {
		t.Errorf("usage %s, want %s", p.Usage, want)
	}
}

// TestReferencesInClear: of what is no id stands that it was there, once.
func TestReferencesInClear(t *testing.T) {
	p := factsOf(call{Protocol: observed.GeminiGenerate, Path: "/v1beta/models/m:generateContent", Status: 200, Request: `{"contents":[],"cachedContent":"cachedContents/c1"}`,
		Response: `{"candidates":[{"content":{"parts":[{"text":"So."}]},"groundingMetadata":{"webSearchQueries":["is Anna ill","who is Anna"],"groundingChunks":[{"web":{"uri":"https://example.org/anna"}}]}}]}`})
	if want := []string{"cachedContent:cachedContents/c1", "search", "url"}; !slices.Equal(p.ContextByReference, want) {
		t.Errorf("%q, want %q", p.ContextByReference, want)
	}
}

// TestListsInThePage: the page names each setting and each word, and no other.
func TestListsInThePage(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "facts.md")))(t)
	for begin, list := range map[string][]string{"The settings are:": observed.Settings(), "The words are:": observed.ClosedWords()} {
		_, after, _ := strings.Cut(string(page), begin)
		paragraph, _, _ := strings.Cut(strings.TrimSpace(after), "\n\n")
		var named []string
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(paragraph, -1) {
			named = append(named, m[1])
		}
		slices.Sort(named)
		if !slices.Equal(named, list) {
			t.Errorf("%s the page has %q, want %q", begin, named, list)
		}
	}
}

// TestLookedUpInClear: what was looked up is a question or an address, also if it is one word: of it the kind alone stands in clear.
func TestLookedUpInClear(t *testing.T) {
	for name, one := range map[string]call{
		"search, Gemini":  {Protocol: observed.GeminiGenerate, Status: 200, Request: `{"contents":[]}`, Response: `{"candidates":[{"content":{"parts":[{"text":"So."}]},"groundingMetadata":{"webSearchQueries":["diabetes","hiv"],"groundingChunks":[{"web":{"uri":"clinic.example/anna"}}]}}]}`},
		"address, chat":   {Protocol: observed.OpenAIChat, Status: 200, Request: `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"diabetes/anna.png"}}]}]}`, Response: `{"choices":[],"citations":["diabetes.example"]}`},
		"address, Claude": {Protocol: observed.AnthropicMessages, Request: `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"diabetes.example/anna"}}]}]}`},
	} {
		got := strings.Join(factsOf(one).ContextByReference, " ")
		if got == "" || strings.Contains(got, "diabetes") || strings.Contains(got, "anna") || strings.Contains(got, "hiv") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

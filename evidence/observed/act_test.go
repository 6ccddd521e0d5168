package observed_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/test/must"
)

const (
	chatRequest  = `{"model":"m","temperature":0.5,"messages":[{"role":"user","content":"Where is parcel 17?"}]}`
	chatResponse = `{"id":"c-1","model":"m-2026","choices":[{"index":0,"message":{"role":"assistant","content":"In Kassel."},"finish_reason":"stop"}],"usage":{"total_tokens":9}}`
)

// body describes bytes that passed without an encoding.
func body(text string) *observed.Body {
	return observed.Whole(text, "application/json")
}

func chat() observed.Act {
	began := time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)
	return observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: "call-1", Timestamp: evidence.FormatTime(began.Add(time.Second))},
		Observed: evidence.Observed{Agent: "shop-bot", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: observed.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Began: evidence.FormatTime(began), FirstByteMS: observed.Milliseconds(200 * time.Millisecond), EndedMS: observed.Milliseconds(time.Second)},
		Request:  body(chatRequest), Response: body(chatResponse)}
}

// sealed opens the payload of an act as a reader gets it.
func sealed(t *testing.T, act observed.Act) *evidence.Record {
	t.Helper()
	p := must.Get(observed.Draft(act))(t).Payload
	draft := must.Get(evidence.NewDraft(p))(t)
	signer := must.Get(evidence.NewSigner(evidence.NewMLDSA65(new([32]byte)), nil))(t)
	id := must.Get(evidence.NewRecordID(act.Payload.Time(), nil))(t)
	return must.Get(draft.Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, RecordID: id}))(t)
}

func TestPayload(t *testing.T) {
	r := sealed(t, chat())
	p := &r.Payload
	if p.Model != "m" || p.ModelVersion != "m-2026" || p.Response != nil || p.Observed.Finish != "stop" || string(p.Parameters) != `{"temperature":0.5}` || string(p.Observed.Usage) != `{"total_tokens":9}` {
		t.Errorf("%+v", p)
	}
	if p.Prompt != nil || len(p.Observed.Missing) > 0 || *p.Observed.FirstByteMS != 200 || *p.Observed.EndedMS != 1000 || p.Timestamp != "2026-01-31T16:15:01.000Z" {
		t.Errorf("prompt %s, %+v", p.Prompt, p.Observed)
	}
	opened := observed.Open(r)
	read := new(observed.Window).Read(opened)
	must.Hold(t, string(read.Request) == chatRequest && string(read.Response) == chatResponse && read.Errs == nil,
		"%s, %s, %v", read.Request, read.Response, read.Errs)
	facts, known := opened.Facts(read)
	must.Hold(t, known && facts.Model == p.Model && facts.Answer == "c-1", "%+v", facts)
}

// TestEncodedBytesSayNothing: bytes that could not be decoded are not read, even if they look like an answer.
func TestEncodedBytesSayNothing(t *testing.T) {
	act := chat()
	act.Request.Encoding, act.Request.Decoded, act.Response.Encoding, act.Response.Decoded = "gzip", evidence.DecodingRefused, "gzip", evidence.DecodingRefused
	p := sealed(t, act).Payload
	must.Hold(t, p.Model == "" && p.Observed.Usage == nil && p.Observed.Response.Decoded == evidence.DecodingRefused, "%+v", p)
}

// TestToldWithoutBytes: what is said of an act stands where there are no bytes, although the protocol is known.
func TestToldWithoutBytes(t *testing.T) {
	act := chat()
	act.Fidelity, act.Request, act.Response, act.Model, act.Payload.Response = evidence.Parsed, nil, nil, "wise", jsontext.Value(`"Two days."`)
	p := sealed(t, act).Payload
	must.Equal(t, p.Model, "wise")
	must.Equal(t, string(p.Response), `"Two days."`)
}

// TestPayloadOfHostileTraffic: an act is recorded whatever passed; what has no place is named.
func TestPayloadOfHostileTraffic(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, test := range map[string]struct {
		change  func(*observed.Act)
		missing string // begins one of them; "": none
	}{
		"a path with a sentence":     {func(a *observed.Act) { a.Path = "/v1/Anna%20was%20here/chat/completions" }, "path: what in it"},
		"a long path":                {func(a *observed.Act) { a.Path = "/" + long }, "path: longer"},
		"a path with a break":        {func(a *observed.Act) { a.Path = "/a\nb" }, "path: has a control"},
		"a path that is not UTF-8":   {func(a *observed.Act) { a.Path = "/\xff" }, "path: not valid"},
		"a long type":                {func(a *observed.Act) { a.Request.Type = long }, "request: type: longer"},
		"an encoding without a name": {func(a *observed.Act) { a.Response.Encoding = long }, ""},
		"a long header":              {func(a *observed.Act) { a.Request.Headers = observed.Headers(map[string]string{"x": long}) }, "request: its headers are too many, or too long"},
		"a header that is not UTF-8": {func(a *observed.Act) { a.Request.Headers = jsontext.Value("{\"x\":\"\xff\"}") }, "request: its headers"},
		"a long id":                  {func(a *observed.Act) { a.ProviderRequestID = long }, "provider_request_id: it is no name"},
		"a method that is none":      {func(a *observed.Act) { a.Method = "\x00" }, "method: it is no name"},
		"a status that is none":      {func(a *observed.Act) { a.Status = 999 }, "status: 999"},
		"a long model":               {func(a *observed.Act) { a.Request = body(`{"model":"` + long + `","messages":[]}`) }, ""},
		"a model of two lines":       {func(a *observed.Act) { a.Request = body(`{"model":"a\nb","messages":[]}`) }, ""},
		"no JSON":                    {func(a *observed.Act) { a.Request, a.Response = body("\xff\x00{"), body("<html>") }, ""},
		"twice a member":             {func(a *observed.Act) { a.Request = body(`{"model":"a","model":"b","messages":[]}`) }, ""},
		"numbers without a form": {func(a *observed.Act) {
			a.Request = body(`{"model":"a","messages":[],"seed":1e400,"n":9007199254740993}`)
		}, ""},
		"deep JSON": {func(a *observed.Act) { a.Response = body(strings.Repeat("[", 100_000)) }, ""},
		"lone surrogates": {func(a *observed.Act) {
			a.Request = body(`{"model":"a","messages":[{"role":"user","content":"\ud800"}]}`)
		}, ""},
		"only control characters": {func(a *observed.Act) { a.Response = body(strings.Repeat("\x01", observed.MaxKept)) }, ""},
		"two long bodies": {func(a *observed.Act) {
			a.Request, a.Response = body(strings.Repeat("\x01", 2*observed.MaxKept)), body(strings.Repeat("\xff", 2*observed.MaxKept))
		}, ""},
		"an encoding that was refused": {func(a *observed.Act) { a.Response.Encoding, a.Response.Decoded = "gzip", evidence.DecodingRefused }, ""},
		"refused, and longer than is kept": {func(a *observed.Act) {
			a.Response = body(strings.Repeat("\xff", observed.MaxKept+1))
			a.Response.Encoding, a.Response.Decoded = "gzip", evidence.DecodingRefused
		}, "response: the bytes are not kept"},
		"nothing kept":           {func(a *observed.Act) { a.Request.Kept = nil }, "request: the bytes are not kept"},
		"many things missing":    {func(a *observed.Act) { a.Missing = make([]string, 5000) }, `""`},
		"a missing of two lines": {func(a *observed.Act) { a.Missing = []string{"a\nb"} }, `"a\nb"`},
		"a thousand references": {func(a *observed.Act) {
			a.Protocol, a.Path = observed.OpenAIResponses, "/v1/responses"
			a.Request = body(`{"model":"a","input":"x","previous_response_id":"` + strings.Repeat("\u20ac", 3000) + `"}`)
		}, ""},
		"an unknown protocol": {func(a *observed.Act) {
			a.Protocol, a.Payload.Response = "other/1", jsontext.Value(`1e400`)
		}, "response: it has no canonical form"},
		"a value of another kind": {func(a *observed.Act) {
			a.Protocol, a.Payload.Response = "other/1", jsontext.Value(`1`)
		}, "response: not of a kind"},
	} {
		t.Run(name, func(t *testing.T) {
			act := chat()
			test.change(&act)
			r := sealed(t, act)
			missing := strings.Join(r.Payload.Observed.Missing, "\n")
			must.Hold(t, (test.missing != "" || missing == "") && strings.Contains("\n"+missing, "\n"+test.missing), "missing: %s", missing)
			opened := observed.Open(r)
			read := new(observed.Window).Read(opened)
			for _, err := range read.Errs {
				must.Hold(t, errors.Is(err, observed.ErrTruncated) || errors.Is(err, observed.ErrUnsealed), "%v", err)
			}
			if facts, known := opened.Facts(read); known && (facts.Model != r.Payload.Model || !slices.Equal(facts.ContextByReference, r.Payload.Observed.ContextByReference)) {
				t.Errorf("a reader finds %+v, and the record says %+v", facts, r.Payload)
			}
		})
	}
}

// TestLargestAct: bodies of the largest size, in the longest spelling, leave room for the facts, and the act can be sealed.
func TestLargestAct(t *testing.T) {
	said := strings.Repeat(`\"`, 1_900_000)
	full := func(doc string) *observed.Body {
		body := []byte(strings.Replace(doc, `"fill":""`, `"fill":"`+strings.Repeat(`\"`, (observed.MaxKept-len(doc))/2)+`"`, 1))
		return observed.Whole(body, "application/json")
	}
	a := observed.Act{Payload: evidence.Payload{AgentID: "witness", RequestID: "1", Timestamp: evidence.FormatTime(time.Now()), ChainID: "c"},
		Observed: evidence.Observed{Agent: "mia", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: observed.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Began: evidence.FormatTime(time.Now()), Upstream: &evidence.Upstream{Origin: "https://api.example"}},
		Request:  full(`{"model":"m","messages":[{"role":"user","content":"a"}],"stop":"` + said + `","fill":""}`), Response: full(`{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"` + said + `"},"finish_reason":"stop"}],"fill":""}`)}
	d := must.Get(observed.Draft(a))(t)
	if missing := strings.Join(d.Observed.Missing, "; "); missing != "" || len(d.RequestBody) < observed.MaxKept || len(d.ResponseBody) < observed.MaxKept || d.ModelVersion != "m-1" {
		t.Errorf("%s", missing)
	}
}

// TestPayloadIsRefused: what the recorder itself says must be right.
func TestPayloadIsRefused(t *testing.T) {
	for name, change := range map[string]func(*observed.Act){
		"no recorder":       func(a *observed.Act) { a.AgentID = "" },
		"no agent":          func(a *observed.Act) { a.Agent = "" },
		"no id":             func(a *observed.Act) { a.RequestID = "" },
		"no end":            func(a *observed.Act) { a.Ended = "" },
		"no vantage":        func(a *observed.Act) { a.Vantage = "" },
		"no digest":         func(a *observed.Act) { a.Request.SHA256 = evidence.Digest{} },
		"no request":        func(a *observed.Act) { a.Request = nil },
		"an agent's act":    func(a *observed.Act) { a.ActionType = evidence.ModelOutput },
		"telemetry, a call": func(a *observed.Act) { a.Vantage, a.Fidelity = evidence.Telemetry, evidence.ByAttributes },
	} {
		act := chat()
		change(&act)
		must.Refuse(t, "", name)(observed.Draft(act))
	}
}

// TestReadingContradicted: a record whose bytes are not those that it states is wrong; one whose bytes are not there is open.
func TestReadingContradicted(t *testing.T) {
	first := sealed(t, func() observed.Act { a := chat(); a.Request = body(strings.Repeat("a long context ", 100)); return a }())
	source := []byte(strings.Repeat("a long context ", 100))
	copying := chat()
	copying.Request = body(strings.Repeat("a long context ", 100) + "and more")
	copying.Request.Earlier = [][]byte{source}
	for name, test := range map[string]struct {
		act    func() observed.Act
		change func(*evidence.Payload)
		alone  bool
		want   error
	}{
		"as it is":            {chat, func(*evidence.Payload) {}, true, nil},
		"another digest":      {chat, func(p *evidence.Payload) { p.Observed.Request.SHA256[0] ^= 1 }, true, observed.ErrWrong},
		"another count":       {chat, func(p *evidence.Payload) { p.Observed.Request.Bytes++ }, true, observed.ErrWrong},
		"other bytes":         {chat, func(p *evidence.Payload) { p.ResponseBody = jsontext.Value(`"{}"`) }, true, observed.ErrWrong},
		"no body":             {chat, func(p *evidence.Payload) { p.ResponseBody = jsontext.Value(`{"base64":"%"}`) }, true, observed.ErrWrong},
		"bytes of nothing":    {chat, func(p *evidence.Payload) { p.Observed.Response = nil }, true, observed.ErrWrong},
		"not sealed":          {chat, func(p *evidence.Payload) { p.ResponseBody = nil }, true, observed.ErrUnsealed},
		"withheld":            {chat, func(p *evidence.Payload) { p.SealedApart = []string{"/response_body"} }, true, observed.ErrWithheld},
		"copied":              {func() observed.Act { return copying }, func(*evidence.Payload) {}, false, nil},
		"copied from nowhere": {func() observed.Act { return copying }, func(*evidence.Payload) {}, true, observed.ErrMissing},
		"copied from behind the end": {func() observed.Act { return copying }, func(p *evidence.Payload) {
			p.RequestBody = jsontext.Value(strings.Replace(string(p.RequestBody), `"length":1500`, `"length":1501`, 1))
		}, false, observed.ErrWrong},
		"copied from elsewhere": {func() observed.Act { return copying }, func(p *evidence.Payload) {
			p.RequestBody = jsontext.Value(strings.Replace(string(p.RequestBody), `"at":0`, `"at":1`, 1))
		}, false, observed.ErrWrong},
	} {
		r := sealed(t, test.act())
		before := string(r.Payload.RequestBody)
		test.change(&r.Payload)
		must.Need(t, !strings.HasPrefix(name, "copied from e") || before != string(r.Payload.RequestBody), "%s: changes nothing: %s", name, before)
		var w observed.Window
		if !test.alone {
			w.Read(observed.Open(first))
		}
		errs := w.Read(observed.Open(r)).Errs
		must.Hold(t, (test.want != nil || errs == nil) && (test.want == nil || len(errs) == 1 && errors.Is(errs[0], test.want)), "%s: %v", name, errs)
	}
}

// TestEvents reads the vectors of events as another program would.
func TestEvents(t *testing.T) {
	doc := must.Get(os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "sealing", "manifest.json")))(t)
	var manifest struct {
		Acts []struct {
			Name       string
			ActionType evidence.ActionType `json:"action_type"`
			ChainID    string              `json:"chain_id"`
			Response   string
			Refused    bool
		} `json:"acts"`
	}
	must.Do(t, json.Unmarshal(doc, &manifest))
	seen := map[observed.EventName]bool{}
	refused := 0
	for _, v := range manifest.Acts {
		if v.ActionType != evidence.RecorderEvent {
			continue
		}
		event, err := observed.ParseEvent(jsontext.Value(v.Response))
		must.Hold(t, (err != nil) == v.Refused, "%s: %v", v.Name, err)
		if err != nil {
			refused++
			continue
		}
		seen[event.Event] = true
		p, err := event.Payload("gate", "2026-01-31T16:15:00Z", v.ChainID)
		must.Hold(t, err == nil && string(p.Response) == v.Response, "%s: written again as %s, %v", v.Name, p.Response, err)
	}
	must.Hold(t, len(seen) == 8 && refused >= 20, "%d events and %d that are none", len(seen), refused)
	must.Refuse(t, "", "an event without its reason is written")((&observed.Event{Event: observed.Stop}).Payload("gate", "2026-01-31T16:15:00Z", ""))
}

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
		must.Hold(t, observed.IsPlain(text), "%q is a name", text)
	}
	for _, text := range []string{"", " ", "/", "a b", "a\tb", "a\nb", "a\n", "a\u00a0b", "https://example.org/a", "//a", "a//b", "a/", "a,b", "a%20b", "a(b)", `a"b`, "Анна", "山田", "a\x00", "a\u202eb", "\xff", strings.Repeat("x", 129),
		"anna@example.org", "mailto:anna.m@example.org", "users/anna@mail.example.org/7", "491700000000@s.whatsapp.net", "@anna:matrix@example.org"} {
		must.Hold(t, !observed.IsPlain(text), "%q is no name", text)
	}
}

// TestPathInClear: of a path stands what is a name, and the rest keeps its place.
func TestPathInClear(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/": "/", "/v1/chat/completions": "/v1/chat/completions", "/v1beta/models/gemini-x:generateContent": "/v1beta/models/gemini-x:generateContent", "/model/anthropic.claude-v2%3A1/invoke": "/model/anthropic.claude-v2%3A1/invoke",
		"/v1/files/Anna%20was%20here": "/v1/files/*", "/v1/users/anna@example.org/runs": "/v1/users/*/runs", "/v1/users/anna%40example.org": "/v1/users/*", "/v1/Anna was here/chat/completions": "/v1/*/chat/completions", "//v1": "//v1", "/%e5%b1%b1": "/*", "/a%2": "/*",
	} {
		must.Equal(t, observed.PathInClear(path), want, path)
	}
}

// TestReferred: whoever looks is told which address, file and question are meant, but no secret in an address; the record names the kind alone.
func TestReferred(t *testing.T) {
	f := factsOf(call{Protocol: observed.GeminiGenerate, Path: "/v1/models/g:generateContent", Status: 200,
		Request:  `{"contents":[{"parts":[{"fileData":{"fileUri":"https://u:p@example.org/f?key=1"}},{"fileData":{"fileUri":"%zz"}}]}]}`,
		Response: `{"candidates":[{"groundingMetadata":{"webSearchQueries":["who is Anna? #1"],"groundingChunks":[{"web":{"uri":"https://example.org/a#b"}},{"web":{"uri":"https://example.org/a?c=1"}}]}}]}`})
	want := []string{"file:https://example.org/f", "file:(an address that is not valid)", "search:who is Anna? #1", "url:https://example.org/a"}
	clear := []string{"file", "search", "url"}
	must.Hold(t, slices.Equal(f.Referred, want) && slices.Equal(f.ContextByReference, clear), "%q, %q", f.Referred, f.ContextByReference)
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
		must.Hold(t, string(p.Parameters) == want, "%.200s: %s, want %s", request, p.Parameters, want)
	}
	p := factsOf(call{Protocol: observed.OpenAIChat, Status: 200, Request: `{"messages":[]}`,
		Response: `{"choices":[{"finish_reason":"stop","message":{"content":"So."}}],"usage":{"total_tokens":7,"a canary":1,"kind":"a canary","service_tier":"standard","list":[{"modality":"TEXT","tokenCount":5}],"other":["a canary"]}}`})
	must.Equal(t, string(p.Usage), `{"list":[{"modality":"TEXT","tokenCount":5}],"service_tier":"standard","total_tokens":7}`)
}

// TestReferencesInClear: of what is no id stands that it was there, once.
func TestReferencesInClear(t *testing.T) {
	p := factsOf(call{Protocol: observed.GeminiGenerate, Path: "/v1beta/models/m:generateContent", Status: 200, Request: `{"contents":[],"cachedContent":"cachedContents/c1"}`,
		Response: `{"candidates":[{"content":{"parts":[{"text":"So."}]},"groundingMetadata":{"webSearchQueries":["is Anna ill","who is Anna"],"groundingChunks":[{"web":{"uri":"https://example.org/anna"}}]}}]}`})
	want := []string{"cachedContent:cachedContents/c1", "search", "url"}
	must.Hold(t, slices.Equal(p.ContextByReference, want), "%q, want %q", p.ContextByReference, want)
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
		must.Hold(t, slices.Equal(named, list), "%s the page has %q, want %q", begin, named, list)
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
		must.Hold(t, got != "" && !strings.Contains(got, "diabetes") && !strings.Contains(got, "anna") && !strings.Contains(got, "hiv"),
			"%s: %q", name, got)
	}
}

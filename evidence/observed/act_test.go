package observed_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
)

const (
	chatRequest  = `{"model":"m","temperature":0.5,"messages":[{"role":"user","content":"Where is parcel 17?"}]}`
	chatResponse = `{"id":"c-1","model":"m-2026","choices":[{"index":0,"message":{"role":"assistant","content":"In Kassel."},"finish_reason":"stop"}],"usage":{"total_tokens":9}}`
)

// body describes bytes that passed without an encoding.
func body(text string) *observed.Body {
	return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Type: "application/json", Kept: []byte(text)}
}

func chat() observed.Act {
	began := time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)
	return observed.Act{Recorder: "gate", RequestID: "call-1", At: began.Add(time.Second), Agent: "shop-bot", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes,
		Protocol: observed.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Began: began,
		FirstByte: new(200 * time.Millisecond), Elapsed: new(time.Second), Request: body(chatRequest), Response: body(chatResponse)}
}

// sealed opens the payload of an act as a reader gets it.
func sealed(t *testing.T, act observed.Act) *evidence.Record {
	t.Helper()
	p := must.Get(observed.Payload(act))(t)
	draft := must.Get(evidence.NewDraft(p))(t)
	signer := must.Get(evidence.NewSigner(evidence.NewMLDSA65(new([32]byte)), nil))(t)
	id := must.Get(evidence.NewRecordID(act.At, nil))(t)
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
	if string(read.Request) != chatRequest || string(read.Response) != chatResponse || read.Errs != nil {
		t.Errorf("%s, %s, %v", read.Request, read.Response, read.Errs)
	}
	if facts, known := opened.Facts(read); !known || facts.Model != p.Model || facts.Answer != "c-1" {
		t.Errorf("%+v", facts)
	}
}

// TestEncodedBytesSayNothing: bytes that could not be decoded are not read, even if they look like an answer.
func TestEncodedBytesSayNothing(t *testing.T) {
	act := chat()
	act.Request.Encoding, act.Request.Refused, act.Response.Encoding, act.Response.Refused = "gzip", true, "gzip", true
	if p := sealed(t, act).Payload; p.Model != "" || p.Observed.Usage != nil || p.Observed.Response.Decoded != evidence.DecodingRefused {
		t.Errorf("%+v", p)
	}
}

// TestToldWithoutBytes: what is said of an act stands where there are no bytes, although the protocol is known.
func TestToldWithoutBytes(t *testing.T) {
	act := chat()
	act.Fidelity, act.Request, act.Response, act.Said = evidence.Parsed, nil, nil, observed.Said{Model: "wise", Response: jsontext.Value(`"Two days."`)}
	p := sealed(t, act).Payload
	if p.Model != "wise" || string(p.Response) != `"Two days."` {
		t.Errorf("model %q, response %s", p.Model, p.Response)
	}
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
		"a long header":              {func(a *observed.Act) { a.Request.Headers = map[string]string{"x": long} }, "request: its headers are too many, or too long"},
		"a header that is not UTF-8": {func(a *observed.Act) { a.Request.Headers = map[string]string{"x": "\xff"} }, "request: a header that"},
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
		"an encoding that was refused": {func(a *observed.Act) { a.Response.Encoding, a.Response.Refused = "gzip", true }, ""},
		"refused, and longer than is kept": {func(a *observed.Act) {
			a.Response = body(strings.Repeat("\xff", observed.MaxKept+1))
			a.Response.Encoding, a.Response.Refused = "gzip", true
		}, "response: the bytes are not kept"},
		"nothing kept":           {func(a *observed.Act) { a.Request.Kept = nil }, "request: the bytes are not kept"},
		"many things missing":    {func(a *observed.Act) { a.Missing = make([]string, 5000) }, `""`},
		"a missing of two lines": {func(a *observed.Act) { a.Missing = []string{"a\nb"} }, `"a\nb"`},
		"a thousand references": {func(a *observed.Act) {
			a.Protocol, a.Path = observed.OpenAIResponses, "/v1/responses"
			a.Request = body(`{"model":"a","input":"x","previous_response_id":"` + strings.Repeat("\u20ac", 3000) + `"}`)
		}, ""},
		"an unknown protocol": {func(a *observed.Act) {
			a.Protocol, a.Said = "other/1", observed.Said{Response: jsontext.Value(`1e400`)}
		}, "response: it has no canonical form"},
		"a value of another kind": {func(a *observed.Act) {
			a.Protocol, a.Said = "other/1", observed.Said{Response: jsontext.Value(`1`)}
		}, "response: not of a kind"},
	} {
		t.Run(name, func(t *testing.T) {
			act := chat()
			test.change(&act)
			r := sealed(t, act)
			missing := strings.Join(r.Payload.Observed.Missing, "\n")
			if test.missing == "" && missing != "" || !strings.Contains("\n"+missing, "\n"+test.missing) {
				t.Errorf("missing: %s", missing)
			}
			opened := observed.Open(r)
			read := new(observed.Window).Read(opened)
			for _, err := range read.Errs {
				if !errors.Is(err, observed.ErrTruncated) && !errors.Is(err, observed.ErrUnsealed) {
					t.Error(err)
				}
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
		return &observed.Body{Bytes: int64(len(body)), SHA256: evidence.DigestOf(body), Kept: body, Type: "application/json"}
	}
	a := observed.Act{Recorder: "witness", RequestID: "1", At: time.Now(), ChainID: "c", Agent: "mia", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: observed.OpenAIChat, Method: "POST", Path: "/v1/chat/completions",
		Status: 200, Ended: evidence.Complete, Began: time.Now(), Upstream: &evidence.Upstream{Origin: "https://api.example"},
		Request:  full(`{"model":"m","messages":[{"role":"user","content":"a"}],"stop":"` + said + `","fill":""}`),
		Response: full(`{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"` + said + `"},"finish_reason":"stop"}],"fill":""}`)}
	d := must.Get(observed.Draft(a))(t)
	if missing := strings.Join(d.Observed.Missing, "; "); missing != "" || len(d.RequestBody) < observed.MaxKept || len(d.ResponseBody) < observed.MaxKept || d.ModelVersion != "m-1" {
		t.Errorf("%s", missing)
	}
}

// TestPayloadIsRefused: what the recorder itself says must be right.
func TestPayloadIsRefused(t *testing.T) {
	for name, change := range map[string]func(*observed.Act){
		"no recorder":       func(a *observed.Act) { a.Recorder = "" },
		"no agent":          func(a *observed.Act) { a.Agent = "" },
		"no id":             func(a *observed.Act) { a.RequestID = "" },
		"no end":            func(a *observed.Act) { a.Ended = "" },
		"no vantage":        func(a *observed.Act) { a.Vantage = "" },
		"no digest":         func(a *observed.Act) { a.Request.SHA256 = evidence.Digest{} },
		"no request":        func(a *observed.Act) { a.Request = nil },
		"an agent's act":    func(a *observed.Act) { a.Type = evidence.ModelOutput },
		"telemetry, a call": func(a *observed.Act) { a.Vantage, a.Fidelity = evidence.Telemetry, evidence.ByAttributes },
	} {
		act := chat()
		change(&act)
		if _, err := observed.Payload(act); err == nil {
			t.Errorf("%s: accepted", name)
		}
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
		if strings.HasPrefix(name, "copied from e") && before == string(r.Payload.RequestBody) {
			t.Fatalf("%s: changes nothing: %s", name, before)
		}
		var w observed.Window
		if !test.alone {
			w.Read(observed.Open(first))
		}
		errs := w.Read(observed.Open(r)).Errs
		if test.want == nil && errs != nil || test.want != nil && (len(errs) != 1 || !errors.Is(errs[0], test.want)) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

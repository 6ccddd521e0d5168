package card

import (
	"strings"
	"testing"

	"jurat/internal/must"
)

func TestReaddress(t *testing.T) {
	from := must.Get(ParseOrigin("https://Agent.example"))(t)
	to := must.Get(ParseOrigin("http://127.0.0.1:8420/"))(t)
	for _, c := range []struct{ card, want string }{
		{`{"name":"A","own":1,"signatures":[{"protected":"e30","signature":"AA"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://agent.example:443/a2a?x=1"},
			{"protocolBinding":"GRPC","url":"https://agent.example/g"},{"protocolBinding":"HTTP+JSON","url":"https://other.example/"},7,{"url":"https://u@agent.example/"}]}`,
			`{"name":"A","own":1,"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://127.0.0.1:8420/a2a?x=1"}]}`},
		{`{"name":"A","url":"https://agent.example/v1","preferredTransport":"HTTP+JSON","additionalInterfaces":[{"transport":"grpc","url":"https://agent.example/"},{"transport":"JSONRPC","url":"https://agent.example"}]}`,
			`{"additionalInterfaces":[{"transport":"JSONRPC","url":"http://127.0.0.1:8420"}],"name":"A","preferredTransport":"HTTP+JSON","url":"http://127.0.0.1:8420/v1"}`},
		{`{"name":"A","url":"https://other.example/"}`, "error: the agent card's url is not at https://agent.example:443"},
		{`{"name":"A","url":"https://agent.example/","preferredTransport":"GRPC"}`, "error: the agent card's url is not at https://agent.example:443, or speaks gRPC"},
		{`{"name":"A","supportedInterfaces":[{"protocolBinding":"GRPC","url":"https://agent.example/"}]}`, "error: the agent card names no interface"},
		{`{"name":"A"}`, "error: the agent card names no interface"},
		{`[]`, "error: parsing agent card"},
	} {
		got, err := Readdress([]byte(c.card), from, to)
		if wrong, is := strings.CutPrefix(c.want, "error: "); is {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: %v, want %s", c.card, err, wrong)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s %v, want\n%s", c.card, got, err, c.want)
		}
	}
}

func TestParseOrigin(t *testing.T) {
	for address, wrong := range map[string]string{"https://a": "", "http://127.0.0.1:1/": "", "grpc://a": "gRPC", "a": "want https", "https://a/path": "paths pass", "https://u:p@a": "want https", "https://a?": "want https", "": "want https", "https://\x00": "no URL"} {
		_, err := ParseOrigin(address)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

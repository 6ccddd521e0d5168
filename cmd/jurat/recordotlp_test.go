package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/internal/subject"
)

// TestRecordOTLP: the same run is recorded by a proxy and told by telemetry. The second is labelled, lists what is missing, and is never proved;
// a trial of it says so in its evidence. A truncated attribute is not taken for the whole prompt.
func TestRecordOTLP(t *testing.T) {
	model := newWiseModel(t)
	t.Setenv("OPENAI_BASE_URL", model.URL+"/v1")
	data := filepath.Join(t.TempDir(), "data")
	agent := written(t, `curl -sS "$OPENAI_BASE_URL/chat/completions" -d '{"model":"wise","messages":[{"role":"user","content":"the first question"}]}'`)
	doing(t, 0, "--data", data, "record", "run", "--agent", "mia", "--chain", "seen", "--", "sh", agent)

	span := func(trace, prompt string) string {
		doc := must.Get(json.Marshal(prompt))(t)
		return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"another-agent"}}]},"scopeSpans":[{"spans":[{"traceId":"` + trace + `","spanId":"b7ad6b7169203331","name":"chat wise","startTimeUnixNano":"1795789736896000000","endTimeUnixNano":"1795789736948468185","droppedAttributesCount":2,"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"wise"}},{"key":"gen_ai.input.messages","value":{"stringValue":` + string(doc) +
			`}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"you said the first question\"}]}]"}}]},{"traceId":"` + trace + `","spanId":"0000000000000001","name":"GET /"}]}]}]}`
	}
	const (
		whole = `[{"role":"user","parts":[{"type":"text","content":"the first question"}]}]`
		told  = "0af7651916cd43dd8448eb211c80319c"
		cut   = "1af7651916cd43dd8448eb211c80319c"
	)
	send := func(bodies ...string) {
		t.Helper()
		stop, at := recordsOTLP(t, data, "--agent", "mia")
		for _, body := range bodies {
			answer := must.Get(http.Post(at+"/v1/traces", "application/json", strings.NewReader(body)))(t)
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("status %d", answer.StatusCode)
			}
		}
		stop()
	}
	send(span(told, whole), span(told, whole), span(cut, whole[:60]))

	trust := written(t, doing(t, 0, "--data", data, "trust"))
	chain := func(name string) string { return "recorded/mia/" + name }
	for _, name := range []string{"seen", told, cut} {
		doing(t, 0, "--data", data, "trial", "--recorded", chain(name), "--jurors", "offline")
	}
	wantAnswers(t, 0, trust, written(t, doing(t, 0, "--data", data, "log", "prove", chain("seen"))), "content: proved", "vantage: proved")
	wantAnswers(t, 0, trust, written(t, doing(t, 0, "--data", data, "log", "prove", chain(told))), "content: proved", "vantage: not proved second-hand", "chain: proved")
	var second []*evidence.Observed
	for _, o := range observedIn(t, data) {
		if o.Vantage == evidence.Telemetry {
			second = append(second, o)
		}
	}
	if len(second) != 2 {
		t.Fatalf("%d records of telemetry: want 2, as one was sent twice", len(second))
	}
	for i, want := range []string{"2 attributes of the span, which the sender dropped", "gen_ai.input.messages: what is told has 60 characters and is not whole JSON"} {
		if o := second[i]; o.Agent != "mia" || o.Fidelity != evidence.ByAttributes || !strings.Contains(strings.Join(o.Missing, "\n"), want) || !strings.Contains(strings.Join(o.Missing, "\n"), "the bytes of the call") {
			t.Errorf("%+v", o)
		}
	}
	shows := shownToJuries(t, data)
	for name, wants := range map[string][]string{"seen": {}, told: {"told by the agent's telemetry to the recorder", "This is second hand", "2 attributes of the span"},
		cut: {"This is second hand", "is not whole JSON"}} {
		shown := shows[chain(name)]
		for _, want := range wants {
			if !strings.Contains(shown, want) {
				t.Errorf("the trial of %s was not shown %q:\n%s", name, want, shown)
			}
		}
		if name == "seen" && strings.Contains(shown, "second hand") {
			t.Errorf("what the proxy saw is shown as second hand:\n%s", shown)
		}
		if has := strings.Contains(shown, "\nthe first question"); has != (name != cut) {
			t.Errorf("the trial of %s: the prompt was shown: %v\n%s", name, has, shown)
		}
	}

	stop, at := recordsOTLP(t, data, "--agent", "mia") // another process
	answer := must.Get(http.Post(at+"/v1/traces", "application/x-protobuf", bytes.NewReader(otlpInProtobuf(t, span(told, whole)))))(t)
	answer.Body.Close()
	if stop(); answer.StatusCode != http.StatusOK {
		t.Errorf("protobuf: %s", answer.Status)
	}
	if n := len(observedIn(t, data)); n != 3 {
		t.Errorf("%d records of what was seen or told: want 3", n)
	}
}

// otlpInProtobuf writes a request in JSON as exporters have it in protobuf. In JSON, ids are in hex; package protojson wants base64.
func otlpInProtobuf(t *testing.T, doc string) []byte {
	t.Helper()
	doc = regexp.MustCompile(`("(?:trace|span)Id":")([0-9a-f]+)"`).ReplaceAllStringFunc(doc, func(member string) string {
		name, id, _ := strings.Cut(member[:len(member)-1], `:"`)
		raw := must.Get(hex.DecodeString(id))(t)
		return name + `:"` + base64.StdEncoding.EncodeToString(raw) + `"`
	})
	var m traces.TracesData
	must.Do(t, protojson.Unmarshal([]byte(doc), &m))
	return must.Get(proto.Marshal(&m))(t)
}

// recordsOTLP starts the recorder. stop interrupts it, and waits. at is its address.
func recordsOTLP(t *testing.T, data string, more ...string) (stop func(), at string) {
	t.Helper()
	c := exec.Command("jurat", append([]string{"--data", data, "record", "otlp", "--listen", "127.0.0.1:0"}, more...)...)
	endsWithTest(t, c)
	out := must.Get(c.StdoutPipe())(t)
	c.Stderr = os.Stderr
	must.Do(t, c.Start())
	lines := bufio.NewReader(out)
	at = must.Get(lines.ReadString('\n'))(t)
	go io.Copy(io.Discard, lines)
	return func() {
		must.Do(t, c.Process.Signal(os.Interrupt))
		must.Do(t, c.Wait())
	}, strings.TrimSpace(at)
}

// shownToJuries returns the evidence of each trial of a recorded chain as jurors are shown it, by the chain.
func shownToJuries(t *testing.T, data string) map[string]string {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: data}))(t)
	defer i.Close()
	shown := map[string]string{}
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if p := &placed.Record.Payload; p.ActionType == evidence.Submission {
			c := must.Get(subject.Parse(p.Response))(t)
			text := fmt.Sprintf("%+v", c.Recorded)
			for _, m := range c.Messages {
				text += "\n" + m.Text
			}
			for _, name := range regexp.MustCompile(`recorded/mia/\w+`).FindAllString(string(p.Response), -1) {
				shown[name] = text
			}
		}
	}
	return shown
}

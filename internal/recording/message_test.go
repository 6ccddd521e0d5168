package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/disktest"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// A counter is a recorder before an agent, to which every path leads.
type counter struct{ *desk }

func newCounter(t *testing.T, folder string, log *shelf, change func(*Config)) *counter {
	t.Helper()
	return &counter{deskBefore(t, folder, log, "agent", relay.Upstream{Speaks: relay.A2A}, func(c *Config) {
		if c.Side = evidence.Answered; change != nil {
			change(c)
		}
	})}
}

// says has the agent answer.
func (c *counter) says(contentType, answer string) {
	c.answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, answer)
	}
}

func (c *counter) ask(method, path, body string, header ...string) (answer string, err error) {
	c.t.Helper()
	_, answer, err = c.desk.ask(method, path, body, header...)
	return answer, err
}

// sent is a message to an agent, with a context unless it is "".
func sent(context, text string) string {
	if context != "" {
		context = `"contextId":"` + context + `",`
	}
	return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",` + context + `"parts":[{"text":"` + text + `"}]}}}`
}

// aTask is a task that an agent answers with.
func aTask(context, id string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"` + id + `","contextId":"` + context + `","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","messageId":"a","parts":[{"text":"Which one?"}]}}}}}`
}

// TestMessages: a message to an agent is a record of the agent that answers it, in the chain of its context.
func TestMessages(t *testing.T) {
	log := &shelf{}
	c := newCounter(t, t.TempDir(), log, nil)
	c.says("application/json", aTask("c1", "t1"))
	for _, one := range []struct{ method, path, body string }{
		{"POST", "/", sent("", "Hello")},
		{"POST", "/", sent("c1", "Hello again")},
		{"POST", "/", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1"}}`},
		{"GET", "/v1/tasks/t1?A2A-Version=1.0", ""},
	} {
		if answer, err := c.ask(one.method, one.path, one.body, "A2A-Version", "1.0"); err != nil || answer != aTask("c1", "t1") {
			t.Fatalf("%s %v", answer, err)
		}
	}
	c.says("application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}`)
	must.Get(c.ask("POST", "/", `{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"id":"t1"}}`))(t)
	c.says("application/json", aTask("c2", "t2"))
	must.Get(c.ask("POST", "/", sent("", "Hello"), "A2A-Version", "1.0"))(t)
	c.says("application/json", `{"name":"Mia"}`)
	must.Get(c.ask("GET", "/.well-known/agent-card.json", ""))(t)
	c.end()
	acts := log.acts(evidence.ObservedMessage)
	var got []string
	for _, a := range acts {
		o := a.Observed
		if o.Agent != "mia" || o.Side != evidence.Answered || o.Path == "" {
			t.Errorf("%+v", o)
		}
		got = append(got, o.Protocol+" "+a.ChainID)
	}
	want := []string{"a2a/1.0 recorded/mia/context-c1", "a2a/1.0 recorded/mia/context-c1", "a2a/1.0 recorded/mia/context-c1", "a2a/1.0 recorded/mia/context-c1", "a2a/0.3 recorded/mia/context-c1", "a2a/1.0 recorded/mia/context-c2", "http recorded/mia/" + acts[len(acts)-1].RecordID}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !strings.Contains(string(acts[0].ResponseBody), `Which one?`) || !strings.Contains(string(acts[0].Parameters), "SendMessage") {
		t.Errorf("%s %s", acts[0].ResponseBody, acts[0].Parameters)
	}
}

// TestChainsOfMessages: names that no chain can have stand for themselves as digests, and a name of who has the agent's token counts: a stranger's does not.
func TestChainsOfMessages(t *testing.T) {
	log := &shelf{}
	c := newCounter(t, t.TempDir(), log, nil)
	c.says("application/json", `{}`)
	long := strings.Repeat("c", 300)
	c.recorder.WhoIs = func(context.Context, string) (string, error) { return "mia", nil }
	for _, header := range [][]string{nil, {"Jurat-Chain", "monday"}, {"Jurat-Chain", "monday", "Jurat-Agent", "Bearer mine"}} {
		must.Get(c.ask("POST", "/", sent(long, "Hello"), header...))(t)
	}
	c.end()
	acts := log.acts(evidence.ObservedMessage)
	of := "recorded/mia/context-" + evidence.DigestOf([]byte(long)).String()
	if len(acts) != 3 || acts[0].ChainID != of || acts[1].ChainID != of || acts[2].ChainID != "recorded/mia/monday" {
		t.Errorf("%v", acts)
	}
}

const pushed = `{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t1","pushNotificationConfig":{"url":"https://example.org","token":"marked-secret","authentication":{"schemes":["Bearer"],"credentials":"marked-secret"}}}}`

// TestSecretsOfNotifications: a token for notifications passes, and is in no record and no file, whatever becomes of the call.
func TestSecretsOfNotifications(t *testing.T) {
	for _, broken := range []bool{false, true} {
		folder, log := t.TempDir(), &shelf{}
		c := newCounter(t, folder, log, func(s *Config) { s.InTheRecord = true })
		got := ""
		c.answer = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = string(body)
			if broken {
				log.fail(errors.New("the disk is full"))
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}
		answer, err := c.ask("POST", "/", pushed)
		if got != pushed || !broken && (err != nil || answer != pushed) || broken && err == nil {
			t.Errorf("the agent got %s, its caller %s and %v", got, answer, err)
		}
		notOnDisk(t, folder, "marked-secret")
		log.fail(nil)
		c.end()
		acts := log.acts(evidence.ObservedMessage)
		if len(acts) != 1 {
			t.Fatalf("%d records", len(acts))
		}
		a := acts[0]
		if text := string(a.RequestBody) + string(a.ResponseBody) + string(a.Parameters) + strings.Join(a.Observed.Missing, " "); strings.Contains(text, "marked-secret") || !strings.Contains(text, "*************") {
			t.Errorf("%s", text)
		}
		for _, b := range []*evidence.ObservedBody{a.Observed.Request, a.Observed.Response} {
			if !b.Masked || b.SHA256 != evidence.DigestOf([]byte(pushed)) || b.Bytes != int64(len(pushed)) {
				t.Errorf("%+v", b)
			}
		}
		if missing := strings.Join(a.Observed.Missing, " "); !strings.Contains(missing, "request: 2 secrets for notifications") || !strings.Contains(missing, "response: 2 secrets") {
			t.Error(missing)
		}
	}
}

func notOnDisk(t *testing.T, folder, secret string) {
	t.Helper()
	for path, text := range disktest.Files(t, folder) {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s has the secret", path)
		}
	}
}

// TestMessageLostInCrash: what the next process seals of a message says whose it is.
func TestMessageLostInCrash(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	c := newCounter(t, folder, log, nil)
	asked := make(chan bool)
	c.answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}
	go c.ask("POST", "/", sent("c1", "Hello")) //nolint:errcheck // the recorder dies
	<-asked
	c.crash()
	next := newCounter(t, folder, log, nil)
	next.end()
	acts := log.acts(evidence.ObservedMessage)
	if len(acts) != 1 || acts[0].Observed.Ended != evidence.LostInCrash && acts[0].Observed.Ended != evidence.ClientGone || acts[0].Observed.Side != evidence.Answered {
		t.Errorf("%+v", acts)
	}
	if len(log.events(t, observed.Start)) != 2 {
		t.Error("no second start")
	}
}

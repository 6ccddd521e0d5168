package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/push"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
	"jurat/recorder"
	"jurat/verify"
	"jurat/verify/trust"
)

// An executor answers as the text of the message demands.
type executor struct{}

func (executor) Execute(_ context.Context, asked *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	said := func(text string) *a2a.Message {
		m := a2a.NewMessageForTask(a2a.MessageRoleAgent, asked, a2a.NewTextPart(text))
		m.ID = "m-" + text
		return m
	}
	return func(yield func(a2a.Event, error) bool) {
		send := func(e a2a.Event) bool { return yield(e, nil) }
		switch asked.Message.Parts[0].Text() {
		case "message":
			m := a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("Hello."), a2a.NewDataPart(map[string]any{"order": 12}), a2a.NewRawPart([]byte("hello")))
			m.ID = "m-1"
			m.ContextID = asked.ContextID
			send(m)
		case "fail":
			yield(nil, fmt.Errorf("no agent is here"))
		case "input":
			_ = asked.StoredTask == nil && !send(a2a.NewSubmittedTask(asked, asked.Message)) || send(a2a.NewStatusUpdateEvent(asked, a2a.TaskStateInputRequired, said("Which one?")))
		default:
			first := a2a.NewArtifactEvent(asked, a2a.NewTextPart("It is"))
			first.Artifact.ID = "a-1"
			_ = send(a2a.NewSubmittedTask(asked, asked.Message)) && send(a2a.NewStatusUpdateEvent(asked, a2a.TaskStateWorking, said("I look."))) && send(first) &&
				send(a2a.NewArtifactUpdateEvent(asked, "a-1", a2a.NewTextPart(" in Bern."))) && send(a2a.NewStatusUpdateEvent(asked, a2a.TaskStateCompleted, said("Done.")))
		}
	}
}

func (executor) Cancel(_ context.Context, asked *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(asked, a2a.TaskStateCanceled, nil), nil)
	}
}

// A binding is a version of A2A over one transport.
type binding struct {
	name    string
	version a2a.ProtocolVersion
	over    a2a.TransportProtocol
	serve   func(a2asrv.RequestHandler) http.Handler
}

var bindings = []binding{
	{"1.0 JSON-RPC", a2a.Version, a2a.TransportProtocolJSONRPC, func(h a2asrv.RequestHandler) http.Handler { return a2asrv.NewJSONRPCHandler(h) }},
	{"1.0 HTTP+JSON", a2a.Version, a2a.TransportProtocolHTTPJSON, func(h a2asrv.RequestHandler) http.Handler { return a2asrv.NewRESTHandler(h) }},
	{"0.3 JSON-RPC", a2av0.Version, a2a.TransportProtocolJSONRPC, func(h a2asrv.RequestHandler) http.Handler { return a2av0.NewJSONRPCHandler(h) }},
	{"0.3 HTTP+JSON", a2av0.Version, a2a.TransportProtocolHTTPJSON, func(h a2asrv.RequestHandler) http.Handler { return a2av0.NewRESTHandler(h) }},
}

// client is the SDK's for an address.
func (b *binding) client(t *testing.T, address string) *a2aclient.Client {
	t.Helper()
	c := must.Get(a2aclient.NewFromEndpoints(t.Context(), []*a2a.AgentInterface{{URL: address, ProtocolBinding: b.over, ProtocolVersion: b.version}},
		a2aclient.WithCompatTransport(a2av0.Version, a2a.TransportProtocolJSONRPC, a2av0.NewJSONRPCTransportFactory(a2av0.JSONRPCTransportConfig{})),
		a2aclient.WithCompatTransport(a2av0.Version, a2a.TransportProtocolHTTPJSON, a2av0.NewRESTTransportFactory(a2av0.RESTTransportConfig{}))))(t)
	return c
}

// made is what differs between two runs: ids and times.
var made = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// talk says everything that the SDK can say, and returns what it got, as JSON.
func talk(t *testing.T, c *a2aclient.Client) (got []string) {
	t.Helper()
	ctx := t.Context()
	note := func(what string, value any, err error) {
		doc := must.Get(json.Marshal(value))(t)
		got = append(got, made.ReplaceAllString(fmt.Sprintf("%s: %s %v", what, doc, err), "ID"))
	}
	ask := func(text string, task a2a.TaskID) *a2a.SendMessageRequest {
		m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))
		m.ContextID, m.TaskID = "context-1", task
		if task != "" {
			m.ContextID = ""
		}
		return &a2a.SendMessageRequest{Message: m}
	}
	var last a2a.TaskID
	for _, text := range []string{"message", "task", "fail", "input"} {
		answer, err := c.SendMessage(ctx, ask(text, ""))
		note("send "+text, answer, err)
		if task, is := answer.(*a2a.Task); is {
			last = task.ID
		}
	}
	for _, text := range []string{"message", "task", "fail", "input"} {
		var events []any
		for event, err := range c.SendStreamingMessage(ctx, ask(text, "")) {
			events = append(events, event)
			if err != nil {
				events = append(events, err.Error())
			}
		}
		note("stream "+text, events, nil)
	}
	task, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: last})
	note("get", task, err)
	task, err = c.GetTask(ctx, &a2a.GetTaskRequest{ID: "none"})
	note("get none", task, err)
	for range 200 { // the agent may still be ending what it did, and then nothing can be cancelled
		if task, err = c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: last}); err == nil || !strings.Contains(err.Error(), "non-cancelable") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	note("cancel", task, err)
	config, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: last, ID: "p1", URL: "https://example.org/hook", Token: "marked-secret"})
	note("push", config, err)
	return got
}

// TestA2A: the A2A project's own SDK gets through two recorders, before its caller and before its agent, what it gets without them. Both owners' files then
// prove each exchange by two witnesses, and no secret is in them.
func TestA2A(t *testing.T) {
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			agent := httptest.NewServer(b.serve(a2asrv.NewHandler(executor{}, a2asrv.WithPushNotifications(push.NewInMemoryStore(), push.NewHTTPPushSender(nil)))))
			defer agent.Close()
			direct := talk(t, b.client(t, agent.URL))

			theirs, ours := filepath.Join(t.TempDir(), "theirs"), filepath.Join(t.TempDir(), "ours")
			answering, at := standing(t, theirs, "mia", recorder.A2A{Origin: agent.URL})
			asking, by := standing(t, ours, "ben", recorder.A2A{Origin: at, Side: recorder.Asked})
			through := talk(t, b.client(t, by))
			if !slices.Equal(direct, through) {
				t.Errorf("direct:\n%s\nthrough recorders:\n%s", strings.Join(direct, "\n"), strings.Join(through, "\n"))
			}
			want := `send task: {"id":"ID","artifacts":[{"artifactId":"a-1","parts":[{"text":"It is"},{"text":" in Bern."}]}]`
			must.Hold(t, strings.HasPrefix(direct[1], want), "the SDK does not work: %s", direct[1])
			for _, r := range []*recorder.Recorder{asking, answering} {
				must.Do(t, r.Close(t.Context()))
			}
			one, ourTrust := carried(t, ours)
			other, theirTrust := carried(t, theirs)
			both := must.Get(trust.Join(ourTrust, theirTrust))(t)
			o := verify.Options{Trust: both}
			o.Together = verify.NewTogether(o)
			for _, bundle := range []*evidence.Bundle{one, other} {
				r := verify.Bundle(bundle, o)
				must.Hold(t, r.Outcome != verify.Refuted, "%+v", r.Details)
			}
			r := o.Together.Exchanges()
			asked, left := 0, 0 // with a body: that came to their end, and that the SDK left before the last byte, as it does with JSON that is called text
			for _, record := range one.Records {
				switch o := record.Payload.Observed; {
				case o.Request.Bytes == 0:
				case o.Ended == evidence.Complete:
					asked++
				case o.Ended == evidence.ClientGone:
					left++
				}
				must.Hold(t, strings.HasPrefix(record.Payload.Observed.Protocol, "a2a/"+string(b.version)),
					"the protocol is %q", record.Payload.Observed.Protocol)
			}
			if len(one.Records) != len(other.Records) || asked < 7 || len(r.Pairs) != asked || len(r.Alone) != 2*left || len(r.Differences) != 0 {
				t.Errorf("%d and %d records, %d exchanges with a body and %d that were left: %d pairs, %d differences, %d alone", len(one.Records), len(other.Records), asked, left, len(r.Pairs), len(r.Differences), len(r.Alone))
			}
			for _, p := range r.Pairs {
				must.Hold(t, p.Proved && p.Witnesses == 2, "%+v", p)
			}
			for _, bundle := range []*evidence.Bundle{one, other} {
				doc, err := bundle.Marshal()
				must.Hold(t, err == nil && !strings.Contains(string(doc), "marked-secret"), "a secret is in the file (%v)", err)
			}
		})
	}
}

// standing opens a recorder before an agent, and returns where it is reached.
func standing(t *testing.T, folder, agent string, a recorder.A2A) (*recorder.Recorder, string) {
	t.Helper()
	r := must.Get(recorder.Open(t.Context(), recorder.Options{Folder: folder, Agent: agent, A2A: &a, Log: slog.New(slog.DiscardHandler)}))(t)
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close)
	return r, server.URL
}

// carried takes the messages of a data folder, and its owner's trust file.
func carried(t *testing.T, folder string) (*evidence.Bundle, *trust.Trust) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	var messages []*evidence.Record
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if placed.Record.Payload.ActionType == evidence.ObservedMessage {
			messages = append(messages, placed.Record)
		}
	}
	bundle := must.Get(i.Ledger.Prove(t.Context(), messages...))(t)
	trusted := must.Get(i.Trust(t.Context()))(t)
	return bundle, trusted
}

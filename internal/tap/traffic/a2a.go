package traffic

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
)

// The versions of A2A that Project reads. A reader of either takes the names of both.
const (
	A2A03 = observed.A2A03
	A2A10 = observed.A2A10
)

var a2aVersion = regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}$`)

// A2AProtocol returns the protocol of a request to an agent, such as A2A10. The version is that of the header A2A-Version; without one it is 0.3. It
// returns "" for other requests, such as one for the agent's card.
func A2AProtocol(method, path, version string) string {
	version = cmp.Or(version, "0.3")
	if !a2aVersion.MatchString(version) {
		return ""
	}
	if kind, _ := a2aAction(path); method == "POST" || kind != a2aUnknown {
		return "a2a/" + version
	}
	return ""
}

// A2AOver reports whether a task in this state waits for nobody but its caller: an agent sends no more of it by itself. States are named as in 1.0 or 0.3.
func A2AOver(state string) bool {
	switch state {
	case "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_CANCELLED", "TASK_STATE_REJECTED", "TASK_STATE_INPUT_REQUIRED",
		"completed", "failed", "canceled", "cancelled", "rejected", "input-required":
		return true
	}
	return false
}

type a2aKind int

const (
	a2aUnknown a2aKind = iota
	a2aSend            // a message: the answer is a message, a task, or events of a task
	a2aTask            // about a task: the answer is the task, or events of it
	a2aOther           // lists, notifications and cards, which say nothing of a conversation
)

// a2aMethods are the methods of JSON-RPC, of 1.0 and of 0.3.
var a2aMethods = map[string]a2aKind{
	"SendMessage": a2aSend, "SendStreamingMessage": a2aSend, "message/send": a2aSend, "message/stream": a2aSend,
	"GetTask": a2aTask, "CancelTask": a2aTask, "SubscribeToTask": a2aTask, "tasks/get": a2aTask, "tasks/cancel": a2aTask, "tasks/resubscribe": a2aTask,
	"ListTasks": a2aOther, "tasks/list": a2aOther,
	"CreateTaskPushNotificationConfig": a2aOther, "GetTaskPushNotificationConfig": a2aOther, "ListTaskPushNotificationConfigs": a2aOther,
	"ListTaskPushNotificationConfig": a2aOther, "DeleteTaskPushNotificationConfig": a2aOther,
	"tasks/pushNotificationConfig/set": a2aOther, "tasks/pushNotificationConfig/get": a2aOther, "tasks/pushNotificationConfig/list": a2aOther,
	"tasks/pushNotificationConfig/delete": a2aOther,
	"GetExtendedAgentCard":                a2aOther, "agent/getAuthenticatedExtendedCard": a2aOther, "agent/authenticatedExtendedCard": a2aOther,
}

// a2aAction returns what the path of a call by HTTP with JSON asks for, and the task that it names.
func a2aAction(path string) (kind a2aKind, task string) {
	method, task := observed.A2AMethod(path)
	switch {
	case method == "":
		return a2aUnknown, ""
	case strings.HasPrefix(method, "message:"):
		return a2aSend, ""
	case task != "":
		return a2aTask, task
	}
	return a2aOther, ""
}

type agent struct {
	*reading
	kind  a2aKind
	rpc   bool // the call is JSON-RPC, and id is the request's
	id    string
	over  bool
	said  []uttered
	known map[string]int // where in said, by key
}

// Uttered is something that the agent said: a message or an artifact, which may grow. Calls of tools and their results are in it, as frameworks put them
// into the parts of a message.
type uttered struct {
	said   []convo.Message
	more   []string // what continues the text of the last part
	begins bool     // the first part is a text
	open   bool     // the last part is a text
}

func (u *uttered) grow(next uttered) {
	if len(next.said) == 0 {
		return
	}
	if len(u.said) == 0 {
		*u = next
		return
	}
	first := &next.said[0]
	if u.open && next.begins {
		u.more = append(u.more, *first.Content[0].Text)
		if first.Content = first.Content[1:]; len(first.Content)+len(first.ToolCalls) == 0 && len(next.said) == 1 {
			return
		}
	}
	u.end()
	if last := &u.said[len(u.said)-1]; last.Role != convo.Tool && first.Role != convo.Tool {
		last.Content, last.ToolCalls = append(last.Content, first.Content...), append(last.ToolCalls, first.ToolCalls...)
		next.said = next.said[1:]
	}
	u.said, u.open = append(u.said, next.said...), next.open
}

func (u *uttered) end() {
	if len(u.more) > 0 {
		content := u.said[len(u.said)-1].Content
		last := &content[len(content)-1]
		*last, u.more = convo.Words(*last.Text+strings.Join(u.more, "")), nil
	}
}

func readA2A(r *reading) {
	a := &agent{reading: r, known: map[string]int{}}
	a.request()
	a.answer()
	if len(a.said) > 0 {
		one := answer{}
		for i := range a.said {
			a.said[i].end()
			one.said = append(one.said, a.said[i].said...)
		}
		a.answers = []answer{one}
	}
	slices.Sort(a.out.Conversation) // the context before the task
	a.out.Conversation = slices.Compact(a.out.Conversation)
}

func (a *agent) request() {
	kind, task := a2aAction(a.call.Path)
	a.kind = kind
	var o *convo.Node
	if kind == a2aUnknown || len(a.call.Request) > 0 {
		o = a.reading.request()
	}
	if o == nil && kind == a2aUnknown {
		return
	}
	if a.rpc = o.Get("method") != nil || kind == a2aUnknown; a.rpc {
		name := o.Word("method")
		a.kind, a.id = a2aMethods[name], convo.TextOf(o.Get("id").Raw())
		if a.kind == a2aUnknown {
			a.problem("request: %q is no method of A2A", name)
		}
		o = a.member(o, "request", "params")
	}
	if a.kind == a2aTask && task == "" {
		task = o.Word("id")
	}
	a.of("task", task)
	if a.kind == a2aSend {
		a.sent(o)
	}
}

func (a *agent) sent(o *convo.Node) {
	at := o.Get("message")
	if at == nil {
		a.fail("request: it has no message")
		return
	}
	m, ok := a.object("request: message", at.Raw())
	if !ok {
		a.out.State = Failed
	} else if a.prompt == nil {
		a.prompt = []convo.Message{}
	}
	if m == nil {
		return
	}
	a.of("context", m.Word("contextId"))
	a.of("task", m.Word("taskId"))
	said := a.parts(convo.User, "", m, "request").said
	if said == nil {
		said = []convo.Message{{Role: convo.User}}
	}
	a.prompt = append(a.prompt, said...)
}

func (a *agent) of(what, id string) {
	if id != "" {
		a.out.Conversation = append(a.out.Conversation, convo.Short(what+":"+id))
	}
}

// belongs notes to which context and task something belongs that the agent sent. The first that has an id names the answer.
func (a *agent) belongs(o *convo.Node, id string) {
	a.out.ProviderID = cmp.Or(a.out.ProviderID, o.Word(id))
	a.of("context", o.Word("contextId"))
	a.of("task", o.Word("taskId"))
}

func (a *agent) parts(role, name string, of *convo.Node, what string) (u uttered) {
	t := &convo.Turn{Role: role, Name: name, Apart: true, Say: func(m convo.Message, _ *convo.Node) { u.said = append(u.said, m) }}
	c := a.reader(&u.said)
	for i, part := range elements[jsontext.Value](a.reading, of, what, "parts") {
		if c.TaskPart(t, part, part); c.Err() != nil {
			a.problem("%s: part %d: it has no text, data or file", what, i)
		}
		u.open = part.Has("text", '"')
		u.begins = u.begins || u.open && i == 0
	}
	t.End()
	return u
}

func (a *agent) answer() {
	if a.failed(explainA2A) || len(a.call.Response) == 0 {
		return
	}
	switch a.body() {
	case whole:
		o, ok := a.object("answer", bytes.TrimPrefix(a.call.Response, []byte("\ufeff")))
		if a.out.Complete = ok; !ok {
			a.out.State = Failed
			return
		}
		a.event(o, "answer")
	case stream:
		n := 0
		for e := range convo.Events(a.call.Response) {
			n++
			what := fmt.Sprintf("answer: event %d", n)
			o, ok := a.object(what, e.Data)
			if !ok {
				a.out.State = Failed
				continue
			}
			a.event(o, what)
		}
		a.out.Complete = a.over && a.out.Error == ""
	default:
		a.fail("answer: it is neither JSON nor a stream of events")
	}
}

func (a *agent) event(o *convo.Node, what string) {
	if fault := o.Within("error"); fault != nil {
		a.out.Error = convo.Short(cmp.Or(explained(fault), "an error without words"))
		return
	}
	if o.Get("result") != nil && a.rpc {
		if convo.TextOf(o.Get("id").Raw()) != a.id {
			a.problem("%s: its id is that of another request", what)
		}
		o = o.Within("result")
	}
	if a.kind != a2aSend && a.kind != a2aTask {
		return
	}
	for _, form := range a2aForms {
		if in := o.Within(form.member); in != nil {
			form.read(a, in, what)
			return
		}
	}
	kind := o.Word("kind")
	switch i := slices.IndexFunc(a2aForms, func(f a2aForm) bool { return f.kind == kind }); {
	case i >= 0:
		a2aForms[i].read(a, o, what)
	case kind == "" && !o.Get("parts").Absent():
		a.answered(o, what)
	case !o.Get("status").Absent():
		a.task(o, what)
	default:
		a.problem("%s: it has no message, task or update of one", what)
		if len(a.said) == 0 {
			a.out.State = Failed
		}
	}
}

// An a2aForm is what an answer or an event can be: under a member in 1.0, by its kind in 0.3.
type a2aForm struct {
	member, kind string
	read         func(a *agent, o *convo.Node, what string)
}

var a2aForms = []a2aForm{{"task", "task", (*agent).task}, {"statusUpdate", "status-update", (*agent).update},
	{"artifactUpdate", "artifact-update", (*agent).artifact}, {"message", "message", (*agent).answered}, {"msg", "message", (*agent).answered}}

func (a *agent) answered(m *convo.Node, what string) {
	a.over = true
	a.belongs(m, "messageId")
	a.hear(m, what)
}

func (a *agent) hear(m *convo.Node, what string) {
	if role := m.Word("role"); role != "agent" && role != "ROLE_AGENT" {
		a.problem("%s: its message has the role %q: read as the agent's", what, convo.Short(role))
	}
	a.put("message:", m.Word("messageId"), a.parts(convo.Assistant, "", m, what))
}

// put keeps what the agent said; what has the same id replaces what came before.
func (a *agent) put(kind, id string, u uttered) {
	key := kind + id
	if at, there := a.known[key]; there && id != "" {
		a.said[at] = u
		return
	}
	a.known[key] = len(a.said)
	a.said = append(a.said, u)
}

// task reads a task as it stands. Of its history counts what the agent said after its caller spoke last.
func (a *agent) task(o *convo.Node, what string) {
	a.out.ProviderID = o.Word("id")
	a.of("context", o.Word("contextId"))
	a.of("task", o.Word("id"))
	history := elements[object](a.reading, o, what, "history")
	for n := len(history) - 1; n >= 0; n-- {
		if role := history[n].Word("role"); role != "agent" && role != "ROLE_AGENT" {
			history = history[n+1:]
			break
		}
	}
	for _, m := range history {
		a.hear(m, what+": history")
	}
	for _, artifact := range elements[object](a.reading, o, what, "artifacts") {
		a.put("artifact:", artifact.Word("artifactId"), a.made(artifact, what))
	}
	a.status(o, what)
}

func (a *agent) made(artifact *convo.Node, what string) uttered {
	return a.parts(convo.Assistant, "artifact", artifact, what+": artifact")
}

func (a *agent) status(o *convo.Node, what string) {
	status := a.member(o, what, "status")
	if state := status.Word("state"); state != "" {
		a.out.Finish, a.over = state, A2AOver(state)
	}
	if m := status.Within("message"); m != nil {
		a.hear(m, what+": status")
	}
}

func (a *agent) update(o *convo.Node, what string) {
	a.belongs(o, "taskId")
	a.status(o, what)
	a.over = a.over || o.Get("final").IsTrue()
}

func (a *agent) artifact(o *convo.Node, what string) {
	a.belongs(o, "taskId")
	artifact := a.member(o, what, "artifact")
	u, id := a.made(artifact, what), artifact.Word("artifactId")
	at, there := a.known["artifact:"+id]
	if !o.Get("append").IsTrue() || !there || id == "" {
		a.put("artifact:", id, u)
		return
	}
	a.said[at].grow(u)
}

func explainA2A(body []byte) string {
	o := convo.ObjectOf(body)
	if fault := o.Within("error"); fault != nil {
		return explained(fault)
	}
	return explained(o)
}

func explained(fault *convo.Node) string {
	kind := cmp.Or(fault.Word("status"), fault.Word("code"), fault.Word("type"))
	if kind == "" && fault.Has("code", '0') {
		kind = fault.Get("code").Text
	}
	return colon(kind, cmp.Or(fault.Word("message"), fault.Word("title"), fault.Word("detail")))
}

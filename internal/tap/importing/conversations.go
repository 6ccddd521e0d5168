package importing

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/subject"
	"jurat/internal/kit/fault"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/telemetry"
	"jurat/internal/tap/traffic"
)

func (r *reader) readCases(place string, data []byte, form subject.Form) ([]subject.Brought, error) {
	return subject.ReadTranscripts(r.Name+":"+place, data, subject.Options{Form: form})
}

// form is the form of conversations that the caller named; "": the one that each shows.
func (r *reader) form() subject.Form {
	if !r.header.given {
		return ""
	}
	switch r.Format {
	case Chat:
		return subject.ChatForm
	case Responses, Anthropic, Gemini, A2A:
		return subject.Form(r.Format)
	}
	return ""
}

// conversation reads a conversation in a form of package subject. A line of JSON Lines may be a message of one conversation: then the
// whole file is read as one.
func (r *reader) conversation(number int, place string, v jsontext.Value) error {
	o := convo.Outline(v)
	if r.header.lines && o != nil && o.Kind == '{' && !o.IsConversation() {
		return r.bad(place, fmt.Errorf("expected a conversation in each line, as in the first"))
	}
	found, err := r.readCases(place, v, r.form())
	if err != nil {
		return r.bad(place, err)
	}
	name := r.label
	if id := first(o, "conversation_id", "session_id", "thread_id", "id"); id != "" {
		name += "-" + id
	} else if number > 0 {
		name += "-" + strconv.Itoa(number)
	}
	top := unit{requested: o.Brief("model")}
	if o.Has("usage", '{') {
		top.usage = o.Get("usage").Raw()
	}
	return r.cases(name, place, v, found, top)
}

func first(o *convo.Node, names ...string) (text string) {
	for _, name := range names {
		text = cmp.Or(text, o.Brief(name))
	}
	return text
}

// cases gives the exchanges of conversations that were read from one value. What top says is said of each answer; its usage is that of the last.
func (r *reader) cases(name, place string, data []byte, found []subject.Brought, top unit) error {
	for _, b := range found {
		if err := b.Err(); err != nil {
			if err := r.bad(place, err); err != nil {
				return err
			}
			continue
		}
		conversation := name
		if len(found) > 1 {
			conversation += "-" + b.Name
		}
		if err := r.exchanges(conversation, place, r.unitsOf(data, b.Case, top)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) exchanges(conversation, place string, units []unit) error {
	g := &gathering{conversation: conversation}
	for _, u := range units {
		u.place = cmp.Or(u.place, place)
		if err := r.give(g.add(u)); err != nil {
			return err
		}
	}
	return r.give(g.end())
}

// unitsOf are the messages of a case, with the bytes that they were read from. Messages from one place are one unit.
func (r *reader) unitsOf(data []byte, c *subject.Case, top unit) []unit {
	var units []unit
	var from, to int64
	for _, m := range c.Messages {
		begin, end, _ := c.Span(m.Number)
		inside := len(units) > 0 && begin >= from && end <= to
		if !inside {
			from, to = begin, end
			units = append(units, unit{raw: bytes.Clone(data[begin:end])})
		}
		u := &units[len(units)-1]
		u.messages = append(u.messages, m)
		u.left = append(u.left, c.LeftOutAt(m.Number)...)
	}
	last := -1
	for i := range units {
		u, o := &units[i], convo.ObjectOf(units[i].raw)
		u.given = r.Format == Inspect && o.Word("source") == "input"
		if u.answers() {
			u.requested, u.model, last = top.requested, cmp.Or(cmp.Or(u.model, o.Brief("model")), top.model), i
		}
		u.at = cmp.Or(first(o, "timestamp", "created_at"), top.at)
	}
	if last >= 0 && top.usage != nil {
		units[last].usage = top.usage
	}
	if len(units) > 0 {
		u := &units[len(units)-1]
		u.failed, u.lacks = top.failed, lacking(u.lacks, top.lacks...)
	}
	return units
}

// isPromptfooResult recognises a result of promptfoo in a line of its own:
// https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult.
func isPromptfooResult(o *convo.Node) bool {
	return o.Has("prompt", '{') && (o.Has("response", '{') || o.Has("error", '"')) && (o.Has("vars", '{') || o.Has("testIdx", '0') || o.Has("testCase", '{'))
}

// result reads a result of promptfoo: one call, or a conversation if there are turns.
func (r *reader) result(number int, place string, v jsontext.Value) error {
	o := convo.ObjectOf(v)
	if o == nil {
		return r.bad(place, fmt.Errorf("expected a result (an object), found %s", v.Kind()))
	}
	response := o.Within("response")
	top := unit{requested: cmp.Or(o.Within("provider").Brief("id"), o.Brief("provider")), failed: response.Brief("error"), lacks: changed(o, response)}
	if response.Has("tokenUsage", '{') {
		top.usage = response.Get("tokenUsage").Raw()
	}
	data := v
	unanswered := response.Get("output").Absent()
	if unanswered { // of a result with an output, the error is that a check failed
		top.failed = cmp.Or(o.Brief("error"), top.failed)
	}
	if unanswered && top.failed != "" { // what was asked is evidence, also without an answer
		data = jsonOf(map[string]jsontext.Value{"prompt": o.Get("prompt").Raw(), "response": jsontext.Value(`{"output":""}`)})
	}
	whole := slices.Concat([]byte(`{"results":[`), data, []byte(`]}`))
	found, err := r.readCases(place, whole, "")
	if err != nil {
		return r.bad(place, err)
	}
	if len(found) != 1 || found[0].Err() != nil {
		return r.cases("", place, nil, found, top)
	}
	name := r.label + "-" + strconv.Itoa(number)
	if id := o.Brief("id"); id != "" {
		name = id
	} else if r.header.scope != "" {
		name = r.header.scope + "-" + strconv.Itoa(number)
	}
	c := found[0].Case
	if c.Form != subject.PromptfooForm || turns(o) {
		return r.cases(name, place, whole, found, top)
	}
	messages := c.Messages
	if unanswered {
		messages = messages[:len(messages)-1]
	}
	return r.give(&Exchange{Conversation: name, Entry: "1", whole: true, units: []unit{{raw: v, place: place, messages: messages,
		requested: top.requested, usage: top.usage, failed: top.failed, lacks: top.lacks, left: c.LeftOutAt(len(c.Messages))}}})
}

// changed lists how the output of a result may be other than what the agent answered to this call.
func changed(o, response *convo.Node) (lacks []string) {
	for _, options := range []*convo.Node{o.Within("testCase").Within("options"), o.Within("prompt").Within("config")} {
		if lacks == nil && (options.Get("transform") != nil || options.Get("postprocess") != nil) {
			lacks = lacking(lacks, "the output as the agent gave it: the evaluation changed it before it was written")
		}
	}
	if response.Has("cached", 't') {
		lacks = lacking(lacks, "a call of its own: the answer is one that was given before, and kept")
	}
	const failed = "2" // promptfoo's ResultFailureReason: 1 is a failed check, 2 an error
	if o.Brief("failureReason") == failed && response.Get("output") != nil && o.Brief("error") != "" {
		lacks = lacking(lacks, "whether all went well: the entry of the file says that there was an error")
	}
	return lacks
}

func turns(o *convo.Node) bool {
	return slices.ContainsFunc([]*convo.Node{o.Within("response").Within("metadata"), o.Within("metadata")}, func(metadata *convo.Node) bool {
		return len(metadata.Get("messages").List()) > 0 || len(metadata.Get("redteamHistory").List()) > 0
	})
}

// sample reads a sample of Inspect. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalSample).
func (r *reader) sample(number int, place string, v jsontext.Value) error {
	o := convo.Outline(v)
	inside := func(name string) *convo.Node { return convo.Outline(o.Get(name).Raw()) }
	if o.Has("messages", '[') && inside("messages").Empty() {
		return nil // it ended before anything was said
	}
	found, err := r.readCases(place, v, "")
	if err != nil {
		return r.bad(place, err)
	}
	output := inside("output")
	top := unit{requested: r.header.model, model: output.Brief("model"), at: cmp.Or(o.Brief("completed_at"), o.Brief("started_at")), failed: inside("error").Brief("message")}
	if output.Has("usage", '{') {
		top.usage = output.Get("usage").Raw()
	}
	if limit := inside("limit").Brief("type"); limit != "" {
		top.lacks = []string{"the rest of the sample, which was ended by its limit: " + plain(limit)}
	}
	name := cmp.Or(r.header.scope, r.label) + "-" + cmp.Or(o.Brief("id"), strconv.Itoa(number)) + "_epoch_" + cmp.Or(o.Brief("epoch"), "1")
	return r.cases(name, place, v, found, top)
}

const mostUnpacked = 1 << 30

// binaryBegins are protobuf's first bytes: the first field's tag, or the high bytes of the length that OpenTelemetry's collector writes before each message.
var binaryBegins = []byte{0x0a, 0, 1}

// recogniseOTLP reports whether the file is of telemetry and no text. What it would be as JSON, others find out.
func (f *File) recogniseOTLP() (bool, error) {
	head := make([]byte, 2)
	n, _ := io.ReadFull(f.whole(), head)
	packed := n == 2 && bytes.Equal(head, []byte{0x1f, 0x8b})
	if !packed && (n == 0 || !slices.Contains(binaryBegins, head[0])) {
		return false, nil
	}
	stop := errors.New("the first is enough")
	err := f.deliveries(func(_ string, e telemetry.Encoding, body []byte) error {
		data, err := telemetry.Decode(telemetry.Either, e, body)
		if err == nil && len(data.ResourceSpans)+len(data.ResourceLogs) > 0 {
			err = stop
		}
		return err
	})
	if err == nil {
		err = errors.New("it has no spans and no entries of logs")
	}
	switch {
	case errors.Is(err, stop) && f.Format != Unknown && f.Format != OTel:
		return false, fmt.Errorf("%s: this looks like %s: leave --from out, or give --from %s", f.Name, OTel, OTel)
	case errors.Is(err, stop):
		f.Format = OTel
		return true, nil
	case packed:
		return false, f.unknown(fmt.Sprintf("it is packed with gzip, and what is in it is no OTLP (unpack other files first): %v", err))
	}
	return false, nil // a text may begin with a line end
}

// deliveries calls do for each body that an exporter would send: a document of JSON, or a message of protobuf.
func (f *File) deliveries(do func(place string, e telemetry.Encoding, body []byte) error) error {
	in := bufio.NewReader(f.text())
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return f.broken("its gzip header", err)
		}
		in = bufio.NewReader(&atMost{unpacked, mostUnpacked})
	}
	head, err := in.Peek(1)
	if err != nil {
		return f.broken("its beginning", err)
	}
	if slices.Contains(binaryBegins, head[0]) && !jsonBegins(in) {
		return f.messages(in, head[0] != binaryBegins[0], do)
	}
	d := newStream(in)
	for n := 1; ; n++ {
		place := fmt.Sprintf("document %d", n)
		v, err := d.value()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.broken(place, err)
		}
		if err := do(place, telemetry.JSON, v); err != nil {
			return err
		}
	}
}

// jsonBegins reports whether a text follows that begins with line ends and a JSON object, and is no protobuf: there 0x0a '{' is a field of 123 bytes.
func jsonBegins(in *bufio.Reader) bool {
	text, _ := in.Peek(in.Size())
	text = bytes.TrimLeft(text, " \t\r\n")
	return bytes.HasPrefix(text, []byte("{")) && bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"`))
}

// messages reads protobuf: one message, or several with their lengths before them.
func (f *File) messages(in io.Reader, many bool, do func(place string, e telemetry.Encoding, body []byte) error) error {
	for n := 1; ; n++ {
		place, length := fmt.Sprintf("message %d", n), int64(telemetry.MaxBody)+1
		if many {
			var size [4]byte
			switch _, err := io.ReadFull(in, size[:]); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return f.broken(place, fmt.Errorf("its length: %w", err))
			}
			if length = int64(binary.BigEndian.Uint32(size[:])); length == 0 { // a small packed file could have millions of them
				return f.broken(place, errors.New("it says that it has 0 bytes: an empty message tells nothing, so this is no file of an exporter"))
			} else if length > telemetry.MaxBody {
				return f.broken(place, fmt.Errorf("it says that it has %d bytes: at most %d are read", length, telemetry.MaxBody))
			}
		}
		body, err := io.ReadAll(io.LimitReader(in, length))
		if err == nil && many && int64(len(body)) < length {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return f.broken(place, err)
		}
		if err := do(place, telemetry.Protobuf, body); err != nil || !many {
			return err
		}
	}
}

type atMost struct {
	r    io.Reader
	left int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d MiB", mostUnpacked>>20)
	}
	return n, err
}

// otel reads what an exporter of OpenTelemetry wrote into a file, as if it had sent it to a recorder.
func (r *reader) otel() error {
	return r.deliveries(func(place string, e telemetry.Encoding, body []byte) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		var told *telemetry.Told
		err := fault.Guard(func() error {
			data, err := telemetry.Decode(telemetry.Either, e, body)
			if err == nil {
				told = telemetry.Find(data)
			}
			return err
		})
		if err != nil {
			return r.bad(place, err)
		}
		for _, reason := range told.Reasons {
			if err := r.bad(place, errors.New(reason)); err != nil {
				return err
			}
		}
		slices.SortStableFunc(told.Acts, func(a, b telemetry.Act) int { return a.Began.Compare(b.Began) })
		for i := range told.Acts {
			a := &told.Acts[i]
			at := ""
			if !a.Began.IsZero() {
				at = a.Began.UTC().Format(time.RFC3339Nano)
			}
			e := &Exchange{Conversation: cmp.Or(a.Chain, cmp.Or(a.Dialogue, cmp.Or(r.given, a.Trace))), Entry: a.RequestID(), own: true, told: a,
				units: []unit{{raw: a.Body, place: fmt.Sprintf("%s, span %s", place, a.RequestID()), at: at}}}
			if err := r.give(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// span is what a recorder seals of an act that telemetry in a file tells of: what it would seal had it been sent, and where it was found.
func (f *File) span(o *Options, e *Exchange, now time.Time) observed.Act {
	a := e.told.Observed(o.Agent, now)
	a.AgentID, a.ChainID = o.Recorder, o.Chain(e.Conversation)
	a.Request.Headers = f.headers(o, e)
	a.Missing = append(a.Missing, "whether the file is whole and unchanged since it was written", "a time that anybody but the writer of the file vouches for")
	return a
}

// counted says how many messages an exchange has before and after the answer, and the model that telemetry names.
func (e *Exchange) counted() (prompt, answers int, model string) {
	if e.told == nil {
		before, after := e.said()
		return len(before), len(after), ""
	}
	p, err := traffic.Project(traffic.Call{Protocol: traffic.OTLP, Request: e.told.Body})
	if err != nil {
		return 0, 0, ""
	}
	facts, _ := observed.FactsOf(&evidence.Observed{Protocol: observed.OTLP, Request: new(evidence.ObservedBody)}, e.told.Body, nil)
	return len(p.Asked), len(p.Answered), cmp.Or(facts.ModelVersion, facts.Model)
}

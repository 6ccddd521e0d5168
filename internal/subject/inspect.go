package subject

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"jurat/internal/convo"
)

// Attachment begins a reference to an attachment of Inspect, in the place of a text.
const Attachment = "attachment://"

// An inspection reads messages of Inspect. They are chat messages in which a call's function is a name:
// https://inspect.aisi.org.uk/reference/inspect_ai.model.html (ChatMessage, ToolCall, Content).
type inspection struct {
	*convo.Reader
	attachments map[string]string
	taken       int // bytes of attachments so far
}

// readInspect reads {"messages", "attachments"}, or an array of messages.
func (c *Case) readInspect(r *convo.Reader, n *convo.Node) {
	in := &inspection{Reader: r, attachments: map[string]string{}}
	if list := n.Get("attachments"); !list.Absent() && list.Kind == '{' {
		for i, key := range list.Names {
			in.attachments[key] = list.Members[i].Text
		}
	}
	list := n
	if n.Kind == '{' {
		list = n.Get("messages")
	}
	if list.Absent() || list.Kind != '[' {
		r.Fail(n, "expected Inspect's messages: an array, or {\"messages\": […]}")
		return
	}
	r.Each(list, convo.AMessage, in.message)
}

func (in *inspection) message(n *convo.Node) {
	m := convo.Message{Role: in.SpokenBy(n), Content: in.content(n.Get("content"))}
	role := convo.RoleOf(m.Role)
	if role == convo.Tool {
		m.ToolCallID, m.Name = in.Str(n, "tool_call_id"), in.Str(n, "function")
		if failed := n.Get("error"); !failed.Absent() {
			m.IsError = true
			m.Refusal = in.Str(failed, "message") // shown if there is no content
		}
		in.Say(m, n)
		return
	}
	for _, call := range in.Objects(n.Get("tool_calls"), "a tool call") {
		m.ToolCalls = append(m.ToolCalls, in.Call(call, in.Str(call, "id"), in.Str(call, "function"), call.Get("arguments")))
	}
	if len(m.ToolCalls) > 0 && role != convo.Assistant && role != convo.User {
		in.Fail(n, "a message of role %s makes tool calls: expected role assistant", role)
	}
	in.Say(m, n)
}

func (in *inspection) content(n *convo.Node) (list convo.Pieces) {
	if n.Absent() || n.Kind == '"' {
		return convo.Pieces{convo.Words(in.text(n))}
	}
	if n.Kind != '[' {
		in.Fail(n, "content of a wrong kind: expected a string or an array, found %s", n.KindName())
	}
	for _, part := range n.Members {
		switch kind := in.Str(part, "type"); kind {
		case "text":
			list = append(list, convo.Words(in.text(part.Get("text"))))
		case "reasoning":
			in.Left(Reasoning)
		case "image", "audio", "video", "document", "data":
			in.Left(Unreadable)
			list = append(list, convo.Words("["+kind+"]"))
		case "tool_use": // a tool of the vendor, with its result
			list = append(list, convo.Words(convo.TextOf(part.Raw())))
		default:
			in.Fail(part, "unknown content %s: expected text, reasoning, image, audio, video, document, data or tool_use", convo.Quote(kind))
		}
	}
	return list
}

// text returns a string, or the attachment that it refers to.
func (in *inspection) text(n *convo.Node) string {
	if n.Absent() {
		return ""
	}
	if n.Kind != '"' {
		in.Fail(n, "expected a string, found %s", n.KindName())
	}
	key, refers := strings.CutPrefix(n.Text, Attachment)
	text, there := in.attachments[key]
	if !there || !refers {
		return n.Text
	}
	if in.taken += len(text); in.taken > MaxFile {
		in.Fail(n, "more than %d MiB of attachments", MaxFile>>20)
	}
	return text
}

// inspectLog reads an evaluation log of Inspect in its JSON form: {"eval", "samples": [{"id", "epoch", "messages",
// "scores", …}]}. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalLog, EvalSample). Scores, targets and
// events stay outside the evidence.
func (t *reader) inspectLog(list *convo.Node) error {
	samples, err := t.look(list)
	if err != nil {
		return err
	}
	if len(samples.Members) == 0 {
		return list.Errorf("a log without samples: expected at least one, for example {\"id\": \"s1\", \"epoch\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}; a log that was written without samples cannot be tried")
	}
	for _, at := range samples.Members {
		if err := t.more(at, "samples: split the log"); err != nil {
			return err
		}
		t.inspectSample(at)
	}
	return nil
}

// inspectSample reads one sample. Its evidence is {"messages"} and, where a message refers to them, {"attachments"}.
func (t *reader) inspectSample(at *convo.Node) {
	sample, err := t.look(at)
	from := &Source{Kind: "inspect", ID: sample.Brief("id"), Epoch: sample.Brief("epoch")}
	messages := sample.Get("messages")
	var n *convo.Node
	switch {
	case err != nil:
		err = at.Errorf("%v", err)
	case messages == nil:
		err = at.Errorf("a sample without messages: expected Inspect's, for example {\"id\": \"s1\", \"epoch\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}")
	default:
		if err = t.room(messages); err == nil {
			n, err = t.messagesOf(at, messages, sample.Get("attachments"))
		}
	}
	if err != nil {
		t.wrong(from.String(), err)
		return
	}
	t.build(from.String(), n, InspectForm, from)
}

// messagesOf reads the messages of a sample, with the sample's attachments if a message refers to one.
func (t *reader) messagesOf(sample, list, attached *convo.Node) (*convo.Node, error) {
	messages, err := t.parse(list)
	if err != nil || attached == nil || !bytes.Contains(list.Raw(), []byte(Attachment)) {
		return messages, err
	}
	attachments, err := t.parse(attached)
	if err != nil {
		return nil, err
	}
	return t.file.Object(sample, convo.Member{Name: "messages", Value: messages}, convo.Member{Name: "attachments", Value: attachments}), nil
}

// Limits of Inspect's packed log.
const (
	maxEntries = 20_000
	maxSample  = 64 << 20
)

// ErrLong says that a value, or a file of an archive, is too long to be read.
var ErrLong = fmt.Errorf("a value longer than %d MiB", maxSample>>20)

// readZip reads an evaluation log of Inspect in its packed form.
func (t *reader) readZip(name string, data []byte) error {
	wrong := func(format string, args ...any) error {
		return &Error{File: name, Reason: fmt.Sprintf(format, args...)}
	}
	archive, err := OpenArchive(bytes.NewReader(data), int64(len(data)), maxEntries)
	if err != nil {
		return wrong("%v", err)
	}
	total, seen := 0, map[string]bool{}
	for _, f := range archive.File {
		if !IsSample(f.Name) {
			continue
		}
		if seen[f.Name] {
			return wrong("the archive has %q twice", f.Name)
		}
		seen[f.Name] = true
		if len(t.found) == maxCases {
			return wrong("more than %d samples: split the log", maxCases)
		}
		data, err := Unpack(f)
		if err != nil {
			return wrong("%q: %v", f.Name, err)
		}
		if total += len(data); total > 2*MaxTranscripts {
			return wrong("more than %d MiB of samples: split the log", 2*MaxTranscripts>>20)
		}
		t.inspectSample(t.use(name+":"+f.Name, data))
	}
	if len(t.found) == 0 {
		return wrong("an archive without samples: expected a log of Inspect (.eval) with samples/ID_epoch_N.json")
	}
	return nil
}

// OpenArchive opens an evaluation log of Inspect in its packed form (.eval): a ZIP archive with a file for each sample, samples/ID_epoch_N.json. See the
// recorder in https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/src/inspect_ai/log/_recorders/eval.py. Nothing in it is written to disk, so names with ..
// lead nowhere.
func OpenArchive(in io.ReaderAt, size int64, most int) (*zip.Reader, error) {
	archive, err := zip.NewReader(in, size)
	if err != nil {
		return nil, fmt.Errorf("a broken archive: %w", err)
	}
	if len(archive.File) > most {
		return nil, fmt.Errorf("more than %d files in the archive", most)
	}
	archive.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderMaxMemory(maxSample), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))) // as Inspect packs newer logs
	return archive, nil
}

// IsSample reports whether a file of an archive is a sample.
func IsSample(name string) bool {
	dir, base := path.Split(name)
	return dir == "samples/" && path.Ext(base) == ".json"
}

// Unpack reads a file of an archive.
func Unpack(f *zip.File) ([]byte, error) {
	file, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("packed by the method %d, which is not known here: write the log as JSON with 'inspect log convert --to json'", f.Method)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSample+1))
	if err == nil && len(data) > maxSample {
		err = ErrLong
	}
	return data, err
}

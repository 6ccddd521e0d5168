package importing

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/tap/convo"
)

// A Format is a kind of file.
type Format string

// The formats. docs/import.md describes each, and where it was learned.
const (
	Unknown    Format = ""            // to be recognised
	Promptfoo  Format = "promptfoo"   // results of promptfoo
	Inspect    Format = "inspect"     // evaluation logs of Inspect, as .eval or .json
	Chat       Format = "openai"      // chat messages, as of OpenAI's chat completions; also files for fine-tuning
	Responses  Format = "responses"   // items of OpenAI's Responses
	Anthropic  Format = "anthropic"   // Anthropic's Messages
	Gemini     Format = "gemini"      // Gemini's contents
	A2A        Format = "a2a"         // A2A tasks
	ClaudeCode Format = "claude-code" // session files of Claude Code
	Codex      Format = "codex"       // rollout files of the Codex CLI
	OTel       Format = "otel"        // OpenTelemetry's traces and logs: OTLP in JSON or protobuf
)

var formats = []Format{Promptfoo, Inspect, Chat, Responses, Anthropic, Gemini, A2A, ClaudeCode, Codex, OTel}

// ParseFormat reads the name of a format. "" stands for the format that the file shows.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); name == "" || slices.Contains(formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: expected one of %s", cut(name, 60), names())
}

func names() string {
	var list []string
	for _, f := range formats {
		list = append(list, string(f))
	}
	return strings.Join(list, ", ")
}

func (f Format) lacks() []string {
	switch f {
	case Promptfoo:
		return []string{tried}
	case Inspect:
		return []string{tried, "what the log has as events alone: calls beside this conversation, and messages that it no longer has"}
	case ClaudeCode:
		return []string{noSystem, unwritten}
	case Codex:
		return []string{unwritten}
	}
	return nil
}

// What files lack.
const (
	tried     = "what surrounds an evaluation: the agent was tried, and not in use"
	noSystem  = "the system prompt"
	unwritten = "what the program adds to prompts without writing it down"
)

// ErrUnknown is in the chain of the error for a file whose format is not certain.
var ErrUnknown = errors.New("which format this is, is not certain")

// A header is what a file says beside its conversations.
type header struct {
	at      string // the JSON pointer of the list of entries
	lines   bool   // JSON Lines
	archive bool   // an archive of samples
	single  bool   // the document is one entry
	whole   bool   // the file is one conversation, with a message in each line
	given   bool   // the format was given, and not recognised
	writer  string // the program that wrote the file, and its version
	scope   string // the file's own id: names of its entries count within it
	model   string // that was asked for
}

func (f *File) recognise() error {
	head := make([]byte, 4)
	if n, _ := io.ReadFull(f.whole(), head); string(head[:n]) == "PK\x03\x04" {
		return f.recogniseArchive()
	}
	if done, err := f.recogniseOTLP(); done || err != nil {
		return err
	}
	signs := &signs{kinds: map[string]jsontext.Kind{}}
	if err := f.look(signs); err != nil {
		return err
	}
	found, at := signs.format()
	if other := signs.other(); found == Unknown && other != "" {
		return f.notRead(other)
	}
	f.header.given = f.Format != Unknown
	switch {
	case f.Format == Unknown && found == Unknown:
		return f.unknown("it has none of the signs of a format")
	case f.Format == Unknown:
		f.Format = found
	case found != Unknown && found != f.Format && !(found.isConversation() && f.Format.isConversation()):
		return fmt.Errorf("%s: this looks like %s: leave --from out, or give --from %s", f.Name, found, found)
	case found == Unknown && !f.Format.isConversation():
		return f.unknown(fmt.Sprintf("it has none of the signs of %s", f.Format))
	}
	f.header.at, f.header.lines, f.header.whole, f.header.single = at.at, at.lines, at.whole, at.single
	if found == Unknown {
		f.header.single = true // package subject says what is wrong with it
	}
	return nil
}

func (f *File) unknown(why string) error {
	return fmt.Errorf("%s: %w: %s", f.Name, ErrUnknown, why)
}

// notRead refuses a file by the name of what it is.
func (f *File) notRead(what string) error {
	return fmt.Errorf("%s: it is %s, which is not read: give JSON messages of OpenAI, Anthropic or Gemini instead; the formats are %s", f.Name, what, names())
}

// isConversation reports whether files of the format have conversations in a form of package subject, and nothing around them.
func (f Format) isConversation() bool {
	return slices.Contains([]Format{Chat, Responses, Anthropic, Gemini, A2A}, f)
}

type signs struct {
	kinds   map[string]jsontext.Kind // of the members of the object that the document is
	list    bool                     // the document is an array
	empty   bool                     // and has no element
	first   *convo.Node              // its first element, or the first line
	lines   bool                     // more documents follow
	codex   bool                     // a line is one of the Codex CLI
	claude  bool                     // a line is one of Claude Code
	results bool                     // there is a list of results within results
}

const mostLooked = 200

func (f *File) look(s *signs) error {
	d := newStream(f.text())
	switch d.peek() {
	case '[':
		s.list = true
		_, err := d.token()
		if s.empty = d.peek() == ']'; err != nil || s.empty {
			return err
		}
		v, err := d.value()
		if err != nil {
			return f.broken("the first element", err)
		}
		s.first = convo.ObjectOf(v)
		return nil
	case '{':
	case jsontext.KindInvalid:
		_, err := d.token()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: it is empty", f.Name)
		}
		return f.unknown("it begins with no JSON, and is no archive: YAML and CSV are not read; promptfoo writes JSON with --output results.json")
	default:
		return f.unknown("it is one JSON value that is no object and no array")
	}
	if err := d.members(func(name string) error { return f.member(s, d, name) }); err != nil {
		return f.broken(fmt.Sprintf("byte %d", d.InputOffset()), err)
	}
	after := d.InputOffset()
	err := d.end()
	if err == nil {
		return nil
	}
	if s.lines = f.lineEnds(after); !s.lines {
		return f.broken(fmt.Sprintf("byte %d", after), err)
	}
	return f.lookAtLines(s)
}

func (f *File) lineEnds(after int64) bool {
	in := bufio.NewReader(f.text())
	if _, err := io.CopyN(io.Discard, in, after); err != nil {
		return false
	}
	for {
		switch c, _ := in.ReadByte(); c {
		case '\n':
			return true
		case ' ', '\t', '\r':
		default:
			return false
		}
	}
}

// members are those of the document, of which nothing but their kinds is known.
func (s *signs) members() *convo.Node {
	n := &convo.Node{Kind: '{'}
	for name, kind := range s.kinds {
		n.Names, n.Members = append(n.Names, name), append(n.Members, &convo.Node{Kind: kind})
	}
	return n
}

func (f *File) member(s *signs, d *stream, name string) error {
	kind := d.peek()
	s.kinds[name] = kind
	switch {
	case name == "results" && kind == '{':
		return d.members(func(name string) error {
			s.results = s.results || name == "results" && d.peek() == '['
			return d.skip()
		})
	case name == "eval" && kind == '{':
		v, err := d.value()
		eval := convo.ObjectOf(v)
		f.header.scope, f.header.model = cmp.Or(eval.Brief("eval_id"), eval.Brief("run_id")), eval.Brief("model")
		if packages := eval.Within("packages"); packages != nil && packages.Brief("inspect_ai") != "" {
			f.header.writer = "inspect_ai " + plain(packages.Brief("inspect_ai"))
		}
		return err
	case name == "session" && kind == '{':
		v, err := d.value()
		f.header.scope = convo.ObjectOf(v).Brief("id")
		return err
	case name == "evalId" && kind == '"':
		v, err := d.value()
		f.header.scope = convo.Brief(v)
		return err
	case name == "metadata" && kind == '{' && s.kinds["results"] != 0:
		v, err := d.value()
		if version := convo.ObjectOf(v).Brief("promptfooVersion"); version != "" {
			f.header.writer = "promptfoo " + plain(version)
		}
		return err
	}
	return d.skip()
}

// lookAtLines looks at the first lines of JSON Lines. Session files may begin with lines that say nothing.
func (f *File) lookAtLines(s *signs) error {
	seen := 0
	err := lines(f.text(), func(_ int, line []byte) error {
		o := convo.ObjectOf(line)
		if s.first == nil {
			s.first = o
		}
		s.codex, s.claude = s.codex || isCodex(o), s.claude || isClaudeCode(o)
		switch version := o.Word("version"); {
		case s.claude && version != "":
			f.header.writer = claudeCodeName + " " + plain(version)
		case s.codex && o.Within("payload").Brief("cli_version") != "":
			f.header.writer = codexName + " " + plain(o.Within("payload").Brief("cli_version"))
		}
		if seen++; seen >= mostLooked || s.codex || s.claude {
			return io.EOF
		}
		return nil
	}, func(int) error { return nil })
	if err != nil && !errors.Is(err, io.EOF) {
		return f.broken("its lines", err)
	}
	return nil
}

// other names what the signs are of, if that is a known kind of file that is not read; "": they are not.
func (s *signs) other() string {
	has := func(name string, kind jsontext.Kind) bool {
		return s.kinds[name] == kind || s.list && s.first.Has(name, kind)
	}
	switch {
	case has("mapping", '{'):
		return "a data export of ChatGPT"
	case has("chat_messages", '['):
		return "a data export of Claude.ai"
	case has("simulations", '['):
		return "results of tau2-bench"
	}
	return ""
}

// format says which format the signs are of, and where its entries are.
func (s *signs) format() (Format, header) {
	members, first := s.members(), s.first
	has := members.Has
	switch {
	case has("resourceSpans", '['), has("resourceLogs", '['):
		return OTel, header{}
	case s.codex:
		return Codex, header{lines: true}
	case s.claude:
		return ClaudeCode, header{lines: true}
	case s.lines && isPromptfooResult(first):
		return Promptfoo, header{lines: true}
	case s.lines && !first.IsConversation():
		return formatOf(first), header{whole: true}
	case s.lines:
		return formatOf(first), header{lines: true}
	case s.list && s.empty:
		return Unknown, header{}
	case s.list && first.IsConversation():
		return formatOf(first), header{}
	case s.list:
		return formatOf(first), header{single: true}
	case has("eval", '{') && has("samples", '['):
		return Inspect, header{at: "/samples"}
	case has("messages", '[') && has("epoch", '0'):
		return Inspect, header{single: true}
	case s.results:
		return Promptfoo, header{at: "/results/results"}
	case has("results", '['):
		return Promptfoo, header{at: "/results"}
	case has("type", '"') && has("payload", '{') && has("timestamp", '"'), isOldCodex(members):
		return Codex, header{lines: true}
	case has("session", '{') && has("items", '['):
		return Codex, header{at: "/items"}
	case has("sessionId", '"') && has("message", '{'):
		return ClaudeCode, header{lines: true}
	}
	return formatOf(members), header{single: true}
}

// formatOf says which form a conversation, or its first message, probably has. Package subject says which it has for certain.
func formatOf(o *convo.Node) Format {
	switch {
	case o == nil:
		return Unknown
	case o.Has("contents", '['), o.Has("candidates", '['), o.Has("role", '"') && o.Has("parts", '[') && !o.Has("messageId", '"') && !o.Has("kind", '"'):
		return Gemini
	case o.Has("history", '['), o.Has("task", '{'), o.Has("parts", '['):
		return A2A
	case o.Has("messages", '[') && (o.Has("system", '"') || o.Has("system", '[')):
		return Anthropic
	case o.Has("messages", '['), o.Has("role", '"') && (o.Has("content", '"') || o.Has("content", '[') || o.Has("content", 'n') || o.Has("tool_calls", '[')):
		return Chat
	case o.Has("input", '['), o.Has("output", '['), o.Has("type", '"') && (o.Has("content", '[') || o.Has("call_id", '"')):
		return Responses
	}
	return Unknown
}

// Package subject reads the agent under trial: what it says it can do (its A2A agent card) and what it did (its
// conversation).
//
// A case is a conversation in one of several forms and, if there is one, the agent's card: a folder, a file, one of
// many in a file, which [ReadTranscripts] finds, or the canonical evidence that a trial carries. What was brought stays complete: [Case.Material] is
// its canonical form. The fields that this package extracts stand beside it. docs/case.md is the specification.
//
// Evidence can also be records that an agent sealed, verified by their submitter (see [FromRecords]): payloads under
// their digests, and messages derived from them by the rules in docs/case.md. [ReadSealed]
// verifies and reads a file of such records.
//
// # Agent card
//
// A2A v1.0 (supportedInterfaces) and v0.3 (protocolVersion, url and preferredTransport at the top). The package reads
// only the members that a juror needs. A member of a wrong kind is an error, an unknown member is not.
//
// # Conversation
//
// [Form] lists the forms. [New] finds the form by its structure, and the evidence names it, so that reading evidence
// never depends on what later versions find. Chat messages and A2A tasks are not named, because earlier evidence does
// not name them.
//
// Messages are numbered from 1 in the order of the file, system messages included. A task's artifacts and its status
// message follow its history, in that order, unless the history has them already.
//
// # A form shows itself in the structure
//
// Only what one form alone can have counts, such as a type of a part. What was said never counts: whoever brings a conversation could
// otherwise choose how it is read by what stands in it. Signs of two forms are refused, and the caller names one.
//
// # Why not the types of an A2A library
//
// Decoding into a library's structs drops unknown members and loses the positions of values. Here the whole document
// is evidence, an error must name the line, and a file may come from an attacker. So [evidence.Canonical] checks the
// documents first, and the few members needed are read from a tree that knows its positions.
//
// # A prompt that repeats the conversation is shown without the repetition
//
// Programs send models the whole conversation with each call. Unless repetitions are left out, the jury would read
// everything many times, and the rules about repetition would find faults that the agent did not commit. Only text
// that was already shown, and is identical, is left out.
//
// A recorder sees all calls of a program: attempts that repeat, conversations side by side, and programs that leave out
// what is long ago. So its records are compared with every beginning of a conversation that was shown, and not only with
// the record before. What a prompt says that the agent had said, and no earlier record has, is shown as that. A call to which the provider
// gave no id is the same call with the id that the program gave it.
//
// # Which call of a model a use of a tool carries out
//
// A recorder sees both apart: what the model asked for, and what the agent's program then asked a server. Programs offer tools to a model
// under names of their own, as mcp__SERVER__TOOL, so what follows the last "__" also names the tool. A program may state the model's id of
// the call. If it is that of a call for another tool or with other arguments, that is said: the program did something else than its model
// asked for. Without an id, the latest call for the tool with the same arguments is the one, which is likely and no more.
//
// # Sealed records as evidence
//
// What an agent sealed goes before the jury as payloads under their digests. A reader who has the records finds each
// of them in the evidence, and need not trust a transcript. Signatures and time stamps stay in the file of the
// records, because they change there and evidence must not change.
//
// The records are verified first, by the submitter's trust. Refuted records are not accepted as evidence, and no
// option changes that: a jury that judges a forgery judges the wrong agent. What is not proved is for the jury to
// weigh, so the evidence itself holds it. Findings refer to records by the number of a message. The program adds the
// record's digest, because models make mistakes when they copy digests.
package subject

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/tap/convo"
)

// MaxFile is the largest file of a case, in bytes.
const MaxFile = convo.MaxDocument

// Names of the two files in a case's folder.
const (
	CardFile         = "agent-card.json"
	ConversationFile = "conversation.json"
	evidenceName     = "evidence"
)

// An Error says what is wrong in a file, where, and what was expected.
type Error = convo.Error

// A Case is the evidence that a jury judges.
type Case struct {
	Card      Card // zero if the case has none: see HasCard
	HasCard   bool
	Messages  []Message
	TaskState string     // of an A2A task, such as "completed"; "" for other conversations
	Form      Form       // of the conversation; "" for records
	Source    *Source    // where the conversation was taken from; nil: it was brought by itself
	LeftOut   []Omission // what the conversation has and jurors are not shown
	Models    []string   // that records name; none of a conversation
	Strange   []string   // of a part: kinds that are not known here

	// Recorded describes the records that the evidence is made of; nil: the evidence is a submitted conversation.
	Recorded *Recorded

	exhibits []evidence.Digest // the records of Recorded
	material []byte
	lines    []lines   // of the messages, in the conversation file
	omitted  []omitted // what is counted in LeftOut, one by one
	checking bool      // go on after a mistake
	mistakes []error   // found while checking
	part     bool      // a part of a conversation, of a program that may be newer
	parsed   bool      // read from evidence, which names the form if it must
}

// Load reads a folder with agent-card.json, which may be missing, and conversation.json. It follows no symbolic links: a case from a
// stranger must not be able to put another file of this machine before the jury. Errors about content are of type
// *Error.
func Load(dir string) (*Case, error) {
	b, err := LoadFolder(dir, Options{})
	if err != nil {
		return nil, err
	}
	return b.Case, b.Err()
}

// LoadFolder is like Load, with the options for the conversation. It ignores the option Card. It returns an error if it
// cannot read the files, and mistakes in them with the Brought.
func LoadFolder(dir string, o Options) (Brought, error) {
	card, conversation, err := readFolder(dir)
	if err != nil {
		return Brought{}, err
	}
	c := &Case{Form: o.Form, checking: o.Check}
	mistakes := c.documents(card, conversation)
	if mistakes != nil {
		c = nil
	}
	return Brought{Case: c, Mistakes: mistakes}, nil
}

func readFolder(dir string) (card, conversation []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("opening case: %w", err)
	}
	defer root.Close()
	card, err = readFile(root, CardFile)
	var absent *Error
	if err != nil && !(errors.As(err, &absent) && absent.Missing) {
		return nil, nil, err
	}
	conversation, err = readFile(root, ConversationFile)
	return card, conversation, err
}

func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: a case is a folder with %s and, if the agent has a card, %s", &Error{File: name, Reason: "no such file", Missing: true}, ConversationFile, CardFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading case: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: name, Reason: "not a regular file (links are not followed)"}
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading case: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading case: %w", err)
	}
	return evidence.CutMark(data), nil // parseNode refuses files that are too long
}

// New makes a case from a conversation and the agent's card, which may be nil. It reads the form that the conversation
// shows. Errors about content are of type *Error.
func New(card, conversation []byte) (*Case, error) { return NewAs("", card, conversation) }

// NewAs is like New for a conversation whose form is known.
func NewAs(form Form, card, conversation []byte) (*Case, error) {
	c := &Case{Form: form}
	if mistakes := c.documents(card, conversation); mistakes != nil {
		return nil, mistakes[0]
	}
	return c, nil
}

// ReadPart reads messages that are a part of a conversation in a form: what they answer need not be among them. The result has
// only messages, what is left out of them, and the kinds of what is not known here and was passed over. The name is for errors, which are of type *Error.
func ReadPart(name string, form Form, part []byte) (*Case, error) {
	root, err := convo.Parse(name, part)
	if err != nil {
		return nil, err
	}
	c := &Case{Form: form, part: true}
	if err := c.readAs(root); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Case) documents(card, conversation []byte) (mistakes []error) {
	var on *convo.Node
	if card != nil {
		root, err := convo.Parse(CardFile, card)
		if err != nil {
			mistakes = append(mistakes, err)
		} else {
			on = root
		}
	}
	if mistakes != nil && !c.checking {
		return mistakes
	}
	root, err := convo.Parse(ConversationFile, conversation)
	if err != nil {
		return append(mistakes, err)
	}
	return append(mistakes, c.build(on, root)...)
}

// Parse reads the evidence that a trial carries: {"agentCard", "conversation", "format", "source"}, of which only the
// conversation must be there, or that of records (see FromRecords). Without a format, the conversation is of chat
// messages or an A2A task. Errors about content are of type *Error.
func Parse(material []byte) (*Case, error) {
	if len(material) > 2*MaxFile+64 {
		return nil, &Error{File: evidenceName, Reason: fmt.Sprintf("longer than %d MiB", 2*MaxFile>>20)}
	}
	if _, err := evidence.Canonical(material); err != nil {
		return nil, convo.NotJSON(evidenceName, material, err)
	}
	if isOfRecords(material) {
		return parseRecords(material)
	}
	root, err := convo.ReadTree(evidenceName, material)
	if err != nil {
		return nil, convo.NotJSON(evidenceName, material, err)
	}
	if root.Kind != '{' {
		return nil, root.Errorf(`expected {"agentCard": …, "conversation": …} or {"records": …, "verification": …}, found %s`, root.KindName())
	}
	for i, name := range root.Names {
		if !slices.Contains([]string{"agentCard", "conversation", "format", "source"}, name) {
			return nil, root.Members[i].Errorf("unknown member: expected conversation, agentCard, format and source")
		}
	}
	conversation := root.Get("conversation")
	if conversation == nil {
		return nil, root.Errorf("expected a conversation")
	}
	c := &Case{parsed: true}
	if err := c.readOrigin(root); err != nil {
		return nil, err
	}
	if mistakes := c.build(root.Get("agentCard"), conversation); len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return c, nil
}

func (c *Case) readOrigin(root *convo.Node) error {
	r := new(convo.Reader)
	if at := root.Get("format"); at != nil {
		if c.Form = Form(r.Str(root, "format")); readers[c.Form] == nil {
			r.Fail(at, "unknown format %s", convo.Quote(string(c.Form)))
		}
	}
	if at := root.Get("source"); at != nil {
		c.Source = &Source{Kind: r.Str(at, "kind"), ID: r.Str(at, "id"), Epoch: r.Str(at, "epoch")}
	}
	return r.Err()
}

// build reads the card, which may be nil, and the conversation, and makes the evidence of them. It returns what is
// wrong.
func (c *Case) build(card, conversation *convo.Node) []error {
	err := c.readBoth(card, conversation)
	if err == nil {
		err = c.seal(card, conversation)
	}
	if err != nil {
		return append(c.mistakes, err)
	}
	return c.mistakes
}

func (c *Case) readBoth(card, conversation *convo.Node) error {
	if card != nil {
		if err := c.mistake(c.readCard(card)); err != nil {
			return err
		}
		c.HasCard = true
	}
	if err := c.readAs(conversation); err != nil {
		return err
	}
	if len(c.Messages) == 0 && c.mistakes == nil {
		return conversation.Errorf("an empty conversation: expected at least one message, for example {\"role\": \"user\", \"content\": \"Hello\"}")
	}
	unanswering := c.link()
	if c.mistakes != nil {
		return nil // a mistake may hide the call of a result
	}
	for _, m := range unanswering {
		what := "no earlier message makes the call "
		if err := c.mistake(conversation.At(c.lines[m.Number-1].offset).Errorf("message %d is the result of a tool, but %s%s: expected a call before it, for example {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"name\": \"get_order\", \"arguments\": {\"order\": 7}}]}", m.Number, what, callName(m))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) readAs(conversation *convo.Node) error {
	form := c.Form
	if form == "" && !c.parsed && !looksLikeCard(conversation) {
		var err error
		if form, err = detectForm(conversation); err != nil {
			return err
		}
	}
	if c.Source != nil {
		c.omits(convo.Judged)
	}
	r := c.reader()
	if read := readers[form]; read != nil {
		c.Form = form
		read(c, r, conversation)
	} else { // chat messages, or a task
		c.readConversation(r, conversation)
	}
	return r.Err()
}

func (c *Case) seal(card, conversation *convo.Node) error {
	var b bytes.Buffer
	b.WriteByte('{')
	if card != nil {
		b.WriteString(`"agentCard":`)
		b.Write(card.Raw())
		b.WriteByte(',')
	}
	b.WriteString(`"conversation":`)
	b.Write(conversation.Raw())
	if readers[c.Form] != nil {
		fmt.Fprintf(&b, `,"format":%q`, c.Form)
	}
	if c.Source != nil {
		b.WriteString(`,"source":`)
		b.Write(c.Source.value())
	}
	b.WriteByte('}')
	material, err := evidence.Canonical(b.Bytes())
	if err != nil { // only nesting can fail: the evidence has one level more than each file
		return convo.NotJSON(conversation.File(), b.Bytes(), err)
	}
	c.material = material
	return nil
}

func (s *Source) value() jsontext.Value {
	doc, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings of a JSON document always marshal
	}
	return doc
}

// Material returns the complete evidence in canonical form: {"agentCard": …, "conversation": …}, or that of records.
func (c *Case) Material() []byte { return bytes.Clone(c.material) }

// Digest returns the digest of the evidence.
func (c *Case) Digest() evidence.Digest { return evidence.DigestOf(c.material) }

// Lines returns the lines of a message in the conversation file that the case was read from, counted from 1. It
// reports false if the case was not read from such a file.
func (c *Case) Lines(number int) (from, to int, ok bool) {
	if number < 1 || number > len(c.lines) {
		return 0, 0, false
	}
	l := c.lines[number-1]
	return l.from, l.to, true
}

// Span returns where a message stands in the conversation file that the case was read from, in bytes. Several messages may stand in
// the same place. It reports false if the case was not read from such a file.
func (c *Case) Span(number int) (from, to int64, ok bool) {
	if number < 1 || number > len(c.lines) {
		return 0, 0, false
	}
	l := c.lines[number-1]
	return l.offset, l.end, true
}

// LeftOutAt returns what is left out in the place of a message, or before it.
func (c *Case) LeftOutAt(number int) (list []Left) {
	for _, o := range c.omitted {
		if o.number == number || o.number > len(c.Messages) && number == len(c.Messages) {
			list = append(list, o.kind)
		}
	}
	return list
}

// Message returns the message with a number, or nil.
func (c *Case) Message(number int) *Message {
	if number < 1 || number > len(c.Messages) {
		return nil
	}
	return &c.Messages[number-1]
}

// ChatSchema is the JSON schema of a conversation in its plain form, chat messages.
//
//go:embed schemas/chat.json
var ChatSchema []byte

// CardSchema is the JSON schema of an agent card, as far as this package reads it.
//
//go:embed schemas/card.json
var CardSchema []byte

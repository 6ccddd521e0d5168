package subject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// MaxFile is the largest file of a case, in bytes.
const MaxFile = 16 << 20

// Names of the two files in a case's folder.
const (
	CardFile         = "agent-card.json"
	ConversationFile = "conversation.json"
	evidenceName     = "evidence"
)

// A Case is the evidence that a jury judges.
type Case struct {
	Card      Card
	Messages  []Message
	TaskState string // of an A2A task, such as "completed"; "" for chat messages

	// Recorded describes the records that the evidence is made of; nil: the evidence is a submitted conversation.
	Recorded *Recorded

	exhibits []evidence.Digest // the records of Recorded
	material []byte
	lines    []lines // of the messages, in the conversation file
}

// Load reads a folder with agent-card.json and conversation.json. It follows no symbolic links: a case from a
// stranger must not be able to put another file of this machine before the jury. Errors about content are of type
// *Error.
func Load(dir string) (*Case, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening case: %w", err)
	}
	defer root.Close()
	card, err := readFile(root, CardFile)
	if err != nil {
		return nil, err
	}
	conversation, err := readFile(root, ConversationFile)
	if err != nil {
		return nil, err
	}
	return New(card, conversation)
}

func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: a case is a folder with %s and %s", &Error{File: name, Reason: "no such file"}, CardFile, ConversationFile)
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
	return data, nil // parseDocument refuses files that are too long
}

// New makes a case from the two documents of a conversation. Errors about content are of type *Error.
func New(card, conversation []byte) (*Case, error) {
	cardDoc, err := parseDocument(CardFile, card)
	if err != nil {
		return nil, err
	}
	conversationDoc, err := parseDocument(ConversationFile, conversation)
	if err != nil {
		return nil, err
	}
	return build(cardDoc.root, conversationDoc.root)
}

// Parse reads the evidence that a trial carries: {"agentCard": …, "conversation": …}, or that of records (see
// FromRecords). Errors about content are of type *Error.
func Parse(material []byte) (*Case, error) {
	if len(material) > 2*MaxFile+64 {
		return nil, &Error{File: evidenceName, Reason: fmt.Sprintf("longer than %d MiB", 2*MaxFile>>20)}
	}
	if _, err := evidence.Canonical(material); err != nil {
		return nil, notJSON(evidenceName, material, err)
	}
	if isOfRecords(material) {
		return parseRecords(material)
	}
	d := &document{file: evidenceName, raw: material}
	root, err := d.read(jsontext.NewDecoder(bytes.NewReader(material)), nil, "")
	if err != nil {
		return nil, notJSON(evidenceName, material, err)
	}
	if root.kind != '{' {
		return nil, root.errorf(`expected {"agentCard": …, "conversation": …} or {"records": …, "verification": …}, found %s`, root.kindName())
	}
	for i, name := range root.names {
		if name != "agentCard" && name != "conversation" {
			return nil, root.members[i].errorf("unknown member: expected agentCard and conversation")
		}
	}
	card, conversation := root.get("agentCard"), root.get("conversation")
	if card == nil || conversation == nil {
		return nil, root.errorf("expected both agentCard and conversation")
	}
	return build(card, conversation)
}

func build(card, conversation *node) (*Case, error) {
	c := &Case{}
	if err := c.readCard(card); err != nil {
		return nil, err
	}
	if err := c.readConversation(conversation); err != nil {
		return nil, err
	}
	if m := c.link(); m != nil {
		return nil, conversation.errorf("message %d is the result of a tool, but no earlier message makes the call %s", m.Number, callName(m))
	}
	whole := bytes.Join([][]byte{[]byte(`{"agentCard":`), card.raw(), []byte(`,"conversation":`), conversation.raw(), []byte(`}`)}, nil)
	material, err := evidence.Canonical(whole)
	if err != nil { // only nesting can fail: the evidence has one level more than each file
		return nil, notJSON(evidenceName, whole, err)
	}
	c.material = material
	return c, nil
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

// Message returns the message with a number, or nil.
func (c *Case) Message(number int) *Message {
	if number < 1 || number > len(c.Messages) {
		return nil
	}
	return &c.Messages[number-1]
}

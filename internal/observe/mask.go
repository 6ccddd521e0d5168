package observe

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// MaskA2A overwrites secrets in the JSON body of a call of A2A with "*", byte for byte, and counts them: the token and the credentials by which an
// agent that sends notifications is known. What a message says is left as it is, whatever its parts name. It changes nothing in place.
func MaskA2A(body []byte) (masked []byte, secrets int) {
	if !bytes.Contains(body, []byte(`token`)) && !bytes.Contains(body, []byte(`credentials`)) && !bytes.Contains(body, []byte(`\u`)) {
		return body, 0
	}
	m := &mask{body: body}
	at := m.json()
	for _, found := range secretText.FindAllSubmatchIndex(body[at:], -1) { // no JSON from here on: nobody can say what belongs to a message
		m.hide(at+found[2], at+found[3])
	}
	if m.secrets == 0 {
		return body, 0
	}
	return m.body, m.secrets
}

var secretText = regexp.MustCompile(`"(?:` + spelled("token") + `|` + spelled("credentials") + `)"\s*:\s*"((?:[^"\\]|\\.)*)`)

// spelled matches a word in JSON, whose letters may be escaped.
func spelled(word string) (pattern string) {
	for _, letter := range word {
		pattern += fmt.Sprintf(`(?:%c|\\u(?i:%04x))`, letter, letter)
	}
	return pattern
}

type mask struct {
	body    []byte
	copied  bool
	secrets int
}

// hide overwrites the bytes from one offset to another.
func (m *mask) hide(from, to int) {
	if from == to {
		return
	}
	if !m.copied {
		m.body, m.copied = bytes.Clone(m.body), true
	}
	for i := from; i < to; i++ {
		m.body[i] = '*'
	}
	m.secrets++
}

// hideCut overwrites the string that begins after an offset and is none of JSON, as it is cut off or has what no string has. It returns where the
// string ends.
func (m *mask) hideCut(at int) int {
	from := at + bytes.IndexByte(m.body[at:], '"') + 1
	end := from
	for ; end < len(m.body) && m.body[end] != '"'; end++ {
		if m.body[end] == '\\' {
			end++
		}
	}
	end = min(end, len(m.body))
	m.hide(from, end)
	return end
}

// json reads as far as the body is JSON, and returns the offset up to where that is.
func (m *mask) json() int {
	d := jsontext.NewDecoder(bytes.NewReader(m.body), lenient)
	for {
		kind, n := d.StackIndex(d.StackDepth())
		name := kind == jsontext.KindBeginObject && n%2 == 0
		token, err := d.ReadToken()
		if err != nil {
			return int(d.InputOffset())
		}
		if !name || token.Kind() != jsontext.KindString {
			continue
		}
		switch token.String() {
		case "parts", "metadata":
			if err := d.SkipValue(); err != nil {
				return int(d.InputOffset())
			}
		case "token", "credentials":
			if d.PeekKind() != jsontext.KindString {
				continue
			}
			v, err := d.ReadValue()
			if err != nil {
				return m.hideCut(int(d.InputOffset()))
			}
			end := int(d.InputOffset())
			m.hide(end-len(v)+1, end-1)
		}
	}
}

package relay

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FuzzEvents: however a body is cut into chunks, the finder lets the same bytes pass in the end, never takes back what passed, and lets nothing
// pass from the first terminal event on. Where that begins, is found here in another way: over the whole text at once.
func FuzzEvents(f *testing.F) {
	for _, e := range endings {
		if strings.HasPrefix(e.contentType, "text/event-stream") {
			f.Add([]byte(e.before+e.terminal), uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		whole := newEvents(Models.rulesOf(nil))
		whole.Write(body)
		cut := newEvents(Models.rulesOf(nil))
		var passed int64
		for chunk := range chunksOf(body, int(size)) {
			cut.Write(chunk)
			if cut.Safe() < passed || cut.Safe() > cut.n {
				t.Fatalf("%d bytes may pass after %d", cut.Safe(), passed)
			}
			passed = cut.Safe()
		}
		if whole.Safe() != cut.Safe() || whole.Found() != cut.Found() || whole.n != int64(len(body)) || cut.n != whole.n {
			t.Fatalf("in one piece, %d bytes may pass, and it finds %q; in pieces of %d, %d and %q", whole.Safe(), whole.Found(), size, cut.Safe(), cut.Found())
		}
		if at, name := terminalEvent(body); at >= 0 && (whole.Safe() > int64(at) || whole.Found() == "") {
			t.Errorf("%d bytes may pass, though %s begins at %d; it finds %q", whole.Safe(), name, at, whole.Found())
		}
	})
}

// chunksOf cuts a body into pieces of a size.
func chunksOf(body []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			n := min(size+1, len(body))
			if !yield(body[:n]) {
				return
			}
			body = body[n:]
		}
	}
}

var lineEnd = regexp.MustCompile(`\r\n|\r|\n`)

// terminalEvent finds the first terminal event that an empty line ends, by the algorithm of the HTML standard over the whole body.
func terminalEvent(body []byte) (int, string) {
	at := 0
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		at = 3
	}
	begin, name, data := -1, "", []string(nil)
	for at < len(body) {
		end := lineEnd.FindIndex(body[at:])
		if end == nil {
			return -1, ""
		}
		line := string(body[at : at+end[0]])
		if line == "" {
			if begin >= 0 && isTerminal(name, strings.Join(data, "\n")) {
				return begin, name
			}
			begin, name, data = -1, "", nil
		} else if line[0] != ':' {
			if begin < 0 {
				begin = at
			}
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimPrefix(value, " "); field {
			case "event":
				name = value
			case "data":
				data = append(data, value)
			}
		}
		at += end[1]
	}
	return -1, ""
}

// isTerminal reads the data with a JSON library. What that refuses may or may not be held.
func isTerminal(name, data string) bool {
	if modelEnds[name] || strings.HasPrefix(data, "[DONE]") {
		return true
	}
	var object struct {
		Type       any `json:"type"`
		Candidates []struct {
			FinishReason any `json:"finishReason"`
		} `json:"candidates"`
	}
	if json.Unmarshal([]byte(data), &object) != nil {
		return false
	}
	kind, _ := object.Type.(string)
	for _, c := range object.Candidates {
		if reason, is := c.FinishReason.(string); is && reason != "FINISH_REASON_UNSPECIFIED" {
			return true
		}
	}
	return modelEnds[kind]
}

// FuzzDocument: the same for JSON documents. Of a document that is valid, the byte that closes it is held, or an element that has a finishReason.
func FuzzDocument(f *testing.F) {
	for _, e := range endings {
		if strings.HasPrefix(e.contentType, "application/json") {
			f.Add([]byte(e.before+e.terminal), uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		whole := newDocument(Models.rulesOf(nil))
		whole.Write(body)
		cut := newDocument(Models.rulesOf(nil))
		var passed int64
		for chunk := range chunksOf(body, int(size)) {
			cut.Write(chunk)
			if cut.Safe() < passed || cut.Safe() > cut.n {
				t.Fatalf("%d bytes may pass after %d", cut.Safe(), passed)
			}
			passed = cut.Safe()
		}
		if whole.Safe() != cut.Safe() || whole.Found() != cut.Found() || whole.n != int64(len(body)) {
			t.Fatalf("in one piece, %d bytes may pass, and it finds %q; in pieces of %d, %d and %q", whole.Safe(), whole.Found(), size, cut.Safe(), cut.Found())
		}
		if !jsontext.Value(body).IsValid() {
			return
		}
		closes := bytes.LastIndexAny(body, "}]")
		trimmed := bytes.TrimRight(body, " \t\r\n")
		if closes == len(trimmed)-1 && whole.Safe() > int64(closes) {
			t.Errorf("the byte that closes the document may pass: %d of %d", whole.Safe(), len(body))
		}
		var elements []jsontext.Value
		if json.Unmarshal(body, &elements) != nil {
			return
		}
		for _, element := range elements {
			if isTerminal("", string(element)) && !strings.Contains(string(element), `"type"`) && whole.Found() == "" {
				t.Errorf("%s is not found", element)
			}
		}
	})
}

// FuzzLockstep: hostile compressed bytes do not make a decoder fail or hang, what passes only grows, and a client can decode no more of it than the
// finder of the decoded body lets pass.
func FuzzLockstep(f *testing.F) {
	for _, encoding := range encodings[1:] {
		f.Add(encoding, bytes.Join(encode(f, encoding, []byte("data: {}\n\n"), []byte("data: [DONE]\n\n")), nil), uint16(3))
	}
	f.Fuzz(func(t *testing.T, encoding string, body []byte, size uint16) {
		inner := newEvents(Models.rulesOf(nil))
		c := newCompressed(encoding, 1<<16, inner)
		defer c.Close()
		var passed int64
		for chunk := range chunksOf(body, int(size)) {
			c.Write(chunk)
			if c.Safe() < passed || c.Safe() > c.n {
				t.Fatalf("%d of %d bytes may pass after %d", c.Safe(), c.n, passed)
			}
			passed = c.Safe()
		}
		if c.err != nil && !errors.Is(c.err, io.EOF) {
			return
		}
		if had := int64(len(plain(t, encoding, body[:passed]))); had > inner.Safe() {
			t.Errorf("%d of %d bytes pass, of which a client decodes %d bytes, and may have %d", passed, len(body), had, inner.Safe())
		}
	})
}

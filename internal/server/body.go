package server

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"

	"jurat/api"
	"jurat/evidence"
)

// readBody reads a request's body, which must be JSON. It refuses a body of another media type, an empty one, one that
// nests too deep as soon as it does, and one that is too long as soon as its length shows that.
func readBody(r *http.Request, media string) ([]byte, error) {
	// Tools such as curl send the media type of a form by default. A body that is not JSON is refused later anyway.
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Header.Get("Content-Type") != "" &&
		(err != nil || got != media && got != "application/x-www-form-urlencoded") {
		return nil, fmt.Errorf("%w: Content-Type: want %s", api.ErrMediaType, media)
	}
	var doc bytes.Buffer
	held := memoryAccountOf(r.Context())
	paid := held.Reading(r.Context(), r.Body)
	if _, err := io.Copy(&doc, shallowReader(paid)); err != nil {
		return nil, malformed(err)
	}
	// Decoding needs much more memory than the body.
	if err := evidence.CheckValues(doc.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrTooLarge, err)
	}
	if err := held.Take(r.Context(), max((bodyFactor-2)*int64(doc.Len()), valueSize*int64(evidence.Values(doc.Bytes())))); err != nil {
		return nil, err
	}
	if doc.Len() == 0 {
		return nil, fmt.Errorf("%w: there is no body", api.ErrMalformed)
	}
	return doc.Bytes(), nil
}

// shallowReader passes on JSON that nests no deeper than payloads may, and fails where it nests deeper.
func shallowReader(r io.Reader) io.Reader { return &shallow{r: r} }

type shallow struct {
	r       io.Reader
	depth   int
	offset  int64
	text    bool // inside a string
	escaped bool // after a backslash in a string
}

func (s *shallow) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for _, b := range p[:n] {
		s.offset++
		s.step(b)
		if s.depth > evidence.MaxDepth {
			return 0, fmt.Errorf("%w: byte %d: arrays and objects nest deeper than %d", api.ErrInvalid, s.offset, evidence.MaxDepth)
		}
	}
	return n, err
}

func (s *shallow) step(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.text:
		s.text, s.escaped = b != '"', b == '\\'
	case b == '"':
		s.text = true
	case b == '[' || b == '{':
		s.depth++
	case b == ']' || b == '}':
		s.depth = max(s.depth-1, 0) // a surplus closing bracket is invalid JSON, and must not raise the limit
	}
}

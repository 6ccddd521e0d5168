package server

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/limits"
)

// Body reads the body of a request, which is JSON. One that nests too deep is refused while it is read, and one that is longer
// than it may be when it says so or where it becomes so.
func Body(r *http.Request, media string) ([]byte, error) {
	// Tools such as curl say by themselves that they send a form. What is no JSON does not pass for it anyway.
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Header.Get("Content-Type") != "" &&
		(err != nil || got != media && got != "application/x-www-form-urlencoded") {
		return nil, fmt.Errorf("%w: Content-Type: want %s", api.ErrMediaType, media)
	}
	var doc bytes.Buffer
	held := limits.AccountOf(r.Context())
	paid := held.Reading(r.Context(), r.Body)
	if _, err := io.Copy(&doc, &shallow{r: paid}); err != nil {
		return nil, malformed(err)
	}
	// What is made of it takes much more.
	if err := held.Take(r.Context(), (limits.BodyFactor-2)*int64(doc.Len())); err != nil {
		return nil, err
	}
	if doc.Len() == 0 {
		return nil, fmt.Errorf("%w: there is no body", api.ErrMalformed)
	}
	return doc.Bytes(), nil
}

// shallow passes on JSON that nests no deeper than payloads may, and fails where it goes deeper.
type shallow struct {
	r       io.Reader
	depth   int
	offset  int64
	text    bool // inside a string
	escaped bool // after a backslash in it
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
		s.depth = max(s.depth-1, 0) // what closes nothing is no JSON, and gives no room either
	}
}

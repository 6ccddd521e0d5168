package traffic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"jurat/internal/kit/fault"
)

var (
	// ErrTooLong is the error of a body that decodes to more than the limit.
	ErrTooLong = errors.New("decoding refused: the decoded body is too large")
	// ErrEncoding is the error of an encoding for which there is no decoder.
	ErrEncoding = errors.New("this content encoding is not known here")
	// ErrBehind is the error of a body that goes on behind the end of its encoding.
	ErrBehind = errors.New("there are bytes behind the end of the content encoding")
)

const (
	maxEncodings = 4
	// maxWindow is how far back a compressed body may refer. RFC 9659 allows 8 MiB for zstd.
	maxWindow = 8 << 20
)

// A source is what decoders read: those that can, take one byte at a time, and so not one too many.
type source interface {
	io.Reader
	io.ByteScanner
}

// DecodeOne reads src without one encoding, named in lower case: gzip, deflate, br, zstd, or "" for none. It reads no further
// ahead in src than it must. Its errors are ErrEncoding, and those of a body that does not begin as its encoding has it. Reading fails with ErrBehind
// where src goes on behind the end of the encoding.
func DecodeOne(encoding string, src source) (io.ReadCloser, error) {
	d, err := decoder(encoding, src)
	if err != nil {
		return nil, err
	}
	return &ended{d, src}, nil
}

func decoder(encoding string, src source) (io.ReadCloser, error) {
	switch encoding {
	case "", "identity":
		return io.NopCloser(src), nil
	case "gzip", "x-gzip":
		d, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		d.Multistream(false) // a further member is behind the end: many clients read none
		return d, nil
	case "deflate": // which is zlib's format: RFC 9110, section 8.4.1.2
		return zlib.NewReader(src)
	case "br":
		return io.NopCloser(brotli.NewReader(src)), nil
	case "zstd": // of several frames all are read, as RFC 8878 has it
		d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%.40q: %w", encoding, ErrEncoding)
}

// ended is a decoder that reaches its end only where its source does: some programs read what stands behind an encoding, and others do not.
type ended struct {
	io.ReadCloser
	src source
}

func (e *ended) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != io.EOF {
		return n, err
	}
	if _, err := e.src.ReadByte(); err == nil {
		return n, ErrBehind
	} else {
		return n, err
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Decode reads src without the encodings that a Content-Encoding header names, in the order in which they were applied. Each
// may decode to at most limit bytes. Reading fails with ErrTooLong if there are more, and with io.ErrUnexpectedEOF where a
// body was cut, after all that could be decoded. A body of no bytes has no encoding: a response to HEAD, or a 304.
func Decode(encoding string, src io.Reader, limit int64) (io.ReadCloser, error) {
	names := strings.Split(encoding, ",")
	if len(names) > maxEncodings {
		return nil, fmt.Errorf("%d encodings, of which at most %d are read: %w", len(names), maxEncodings, ErrEncoding)
	}
	var s stack
	for _, name := range slices.Backward(names) {
		ahead := bufio.NewReader(src)
		if _, err := ahead.Peek(1); errors.Is(err, io.EOF) {
			name = ""
		}
		d, err := DecodeOne(strings.ToLower(strings.TrimSpace(name)), ahead)
		if err != nil {
			return nil, errors.Join(noEOF(err), s.Close())
		}
		b := &bounded{ReadCloser: d, left: limit}
		s.closers, s.Reader, src = append(s.closers, b), b, b
	}
	return &s, nil
}

type stack struct {
	io.Reader
	closers []io.Closer
}

func (s *stack) Close() (err error) {
	for _, c := range slices.Backward(s.closers) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// bounded reads no more than a number of bytes, and fails with ErrTooLong if there are more.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (n int, err error) {
	err = fault.Guard(func() error {
		n, err = b.ReadCloser.Read(p)
		return err
	})
	if b.left -= int64(n); b.left < 0 {
		return 0, ErrTooLong
	}
	return n, err
}

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

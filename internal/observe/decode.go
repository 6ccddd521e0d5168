package observe

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"jurat/internal/fault"
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

// A stack reads through several decoders.
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

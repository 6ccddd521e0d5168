// Package decode removes content encodings from the bodies of recorded calls. A recorder passes the bytes as they are, and
// reads a decoded copy. It is apart from package observe because verifiers get that copy, and need no decoders in a
// browser.
package decode

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Errors of Body.
var (
	// ErrTooLong is the error of a body that decodes to more than the limit.
	ErrTooLong = errors.New("decodes to more bytes than the limit")
	// ErrShort is the error of a body that ends too early. Body returns what came before.
	ErrShort = errors.New("ends before its encoding does")
	// ErrEncoding is the error of an encoding that Body does not know.
	ErrEncoding = errors.New("unknown content encoding")
)

const (
	maxEncodings = 4
	zstdWindow   = 8 << 20 // RFC 9659, section 3
)

// Body removes the encodings that a Content-Encoding header names: gzip, deflate, zstd, br and identity, several of
// them in the order in which they were applied. It holds at most about twice the limit in memory, whatever the body
// decodes to. It returns ErrTooLong, ErrShort with what could be decoded, ErrEncoding, or an error about a body that is
// not what its encoding says.
func Body(encoding string, body []byte, limit int) ([]byte, error) {
	names := strings.Split(encoding, ",")
	if len(names) > maxEncodings {
		return nil, fmt.Errorf("%w: %d encodings: at most %d are read", ErrEncoding, len(names), maxEncodings)
	}
	var short error
	for _, name := range slices.Backward(names) {
		name = strings.ToLower(strings.TrimSpace(name))
		decoded, err := decodeOne(name, body, limit)
		switch {
		case errors.Is(err, ErrShort):
			short = err
		case err != nil:
			return nil, err
		}
		body = decoded
	}
	return body, short
}

func decodeOne(name string, body []byte, limit int) ([]byte, error) {
	if name == "" || name == "identity" {
		if len(body) > limit {
			return nil, fmt.Errorf("body: %w of %d", ErrTooLong, limit)
		}
		return body, nil
	}
	open, known := decoders[name]
	if !known {
		return nil, fmt.Errorf("%w %.40q: known are gzip, deflate, zstd and br", ErrEncoding, name)
	}
	if len(body) == 0 { // there is no body to a HEAD or a 204, whatever the header says
		return nil, nil
	}
	var decoded bytes.Buffer
	from, err := open(body)
	if err == nil {
		defer from.Close()
		_, err = io.Copy(&decoded, io.LimitReader(from, int64(limit)+1))
	}
	switch {
	case decoded.Len() > limit:
		return nil, fmt.Errorf("%s: %w of %d", name, ErrTooLong, limit)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return decoded.Bytes(), fmt.Errorf("%s: %w", name, ErrShort)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return decoded.Bytes(), nil
}

var decoders = map[string]func([]byte) (io.ReadCloser, error){
	"gzip": openGzip, "x-gzip": openGzip, "deflate": openDeflate, "zstd": openZstd, "br": openBrotli,
}

func openGzip(body []byte) (io.ReadCloser, error) { return gzip.NewReader(bytes.NewReader(body)) }

// openDeflate reads the zlib format, as RFC 9110 has it, or the bare one, which some servers send.
func openDeflate(body []byte) (io.ReadCloser, error) {
	r, err := zlib.NewReader(bytes.NewReader(body))
	if errors.Is(err, zlib.ErrHeader) {
		return flate.NewReader(bytes.NewReader(body)), nil
	}
	return r, err
}

// openZstd reads one block after the other in this goroutine.
func openZstd(body []byte) (io.ReadCloser, error) {
	d, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

func openBrotli(body []byte) (io.ReadCloser, error) {
	return io.NopCloser(brotli.NewReader(bytes.NewReader(body))), nil
}

package traffic_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

// sample is a part of a stream of events.
const encodedSample = "data: {\"id\":\"chatcmpl-1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is so.\"}}]}\n\ndata: [DONE]\n\n"

// encoders write each encoding that Decode reads.
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":   func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser {
		return zlib.NewWriter(w)
	},
	"zstd": func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			panic(err)
		}
		return z
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
}

// all reads a body without its encodings.
func all(encoding string, body []byte, limit int) ([]byte, error) {
	r, err := traffic.Decode(encoding, bytes.NewReader(body), int64(limit))
	if err != nil {
		return nil, err
	}
	decoded, err := io.ReadAll(r)
	return decoded, errors.Join(err, r.Close())
}

// encode writes parts, each flushed as servers do with events.
func encode(t testing.TB, name string, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := encoders[name](&b)
	for _, part := range parts {
		_, err := w.Write(part)
		must.Do(t, err)
		if f, is := w.(interface{ Flush() error }); is && len(parts) > 1 {
			must.Do(t, f.Flush())
		}
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestAll(t *testing.T) {
	text := []byte(strings.Repeat(encodedSample, 20))
	for name := range encoders {
		got, err := all(name, encode(t, name, text), len(text))
		must.Hold(t, err == nil && bytes.Equal(got, text), "%s: %d bytes, %v", name, len(got), err)
		must.Fail(t, traffic.ErrTooLong, name)(all(name, encode(t, name, text), len(text)-1))
		for other := range encoders {
			got, err := all(name+" , identity,"+other, encode(t, other, encode(t, name, text)), len(text))
			must.Hold(t, err == nil && bytes.Equal(got, text), "%s in %s: %d bytes, %v", name, other, len(got), err)
		}
		got, err = all(name, nil, 9)
		must.Hold(t, err == nil && len(got) == 0, "%s of nothing: %q, %v", name, got, err)
	}
	got, err := all("", text, len(text))
	must.Hold(t, err == nil && bytes.Equal(got, text), "no encoding: %v", err)
	for _, name := range []string{"compress", "dcb", "what,identity", "gzip,gzip,gzip,gzip,gzip"} {
		must.Fail(t, traffic.ErrEncoding, name)(all(name, []byte("x"), 9))
	}
}

// TestShort: of an encoded stream that was cut anywhere, all that was flushed before the cut is decoded.
func TestShort(t *testing.T) {
	parts := [][]byte{[]byte("data: first\n\n"), []byte("data: second\n\n"), []byte("data: third\n\n")}
	text := bytes.Join(parts, nil)
	for name := range encoders {
		flushed, body := len(encode(t, name, parts[0])), encode(t, name, parts...)
		for n := 1; n < len(body); n++ {
			got, err := all(name, body[:n], 1<<10)
			must.Need(t, err == nil || errors.Is(err, io.ErrUnexpectedEOF), "%s, %d of %d bytes: %v", name, n, len(body), err)
			must.Need(t, bytes.HasPrefix(text, got) && (err != nil || bytes.Equal(got, text)), "%s, %d of %d bytes: %q, %v", name, n, len(body), got, err)
			must.Need(t, n <= flushed+8 || len(got) >= len(parts[0]), "%s, %d of %d bytes: %q: the first event was flushed", name, n, len(body), got)
		}
	}
}

// TestBombs: a small body that decodes to very much is refused before it fills the memory.
func TestBombs(t *testing.T) {
	const size, limit = 48 << 20, 1 << 20
	zeros := make([]byte, size)
	for name := range encoders {
		once := encode(t, name, zeros)
		for encoding, bomb := range map[string][]byte{name: once, name + "," + name: encode(t, name, once)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := all(encoding, bomb, limit)
			runtime.ReadMemStats(&after)
			must.Hold(t, errors.Is(err, traffic.ErrTooLong) && len(got) <= limit, "%s of %d bytes: %d bytes, %v", encoding, len(bomb), len(got), err)
			used := after.TotalAlloc - before.TotalAlloc
			must.Hold(t, used <= size/2, "%s of %d bytes: %d bytes of memory", encoding, len(bomb), used)
		}
	}
}

// TestDamage: a body with a changed byte is refused, or it decodes to something within the limit.
func TestDamage(t *testing.T) {
	text := []byte(encodedSample)
	for name := range encoders {
		body := encode(t, name, text)
		for i := range body {
			body[i] ^= 0x55
			got, err := all(name, body, 1<<16)
			must.Need(t, err != nil || len(got) <= 1<<16, "%s, byte %d: %d bytes", name, i, len(got))
			body[i] ^= 0x55
		}
	}
}

// FuzzDecodeBodies: no more is decoded than the limit, whatever the body is.
func FuzzDecodeBodies(f *testing.F) {
	for name := range encoders {
		f.Add(name, encode(f, name, []byte(encodedSample)))
	}
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		const limit = 1 << 16
		got, err := all(encoding, body, limit)
		must.Hold(t, len(got) <= limit, "%d bytes, %v", len(got), err)
	})
}

func TestMaskA2A(t *testing.T) {
	for body, want := range map[string]string{
		`{"params":{"configuration":{"pushNotificationConfig":{"token":"s3","authentication":{"credentials" : "a\"b"}}}}}`: `{"params":{"configuration":{"pushNotificationConfig":{"token":"**","authentication":{"credentials" : "****"}}}}}`,
		`{"message":{"parts":[{"data":{"token":"said"}}],"metadata":{"token":"said"}},"t\u006fken":"s3"}`:                  `{"message":{"parts":[{"data":{"token":"said"}}],"metadata":{"token":"said"}},"t\u006fken":"**"}`,
		`[{"token":"a"},{"token":"b"}]`:                               `[{"token":"*"},{"token":"*"}]`,
		`{"token":7,"credentials":{"token":"é"},"nextPageToken":"p"}`: `{"token":7,"credentials":{"token":"**"},"nextPageToken":"p"}`,
		`{"token":""}`:                               `{"token":""}`,
		`{"token":"a","token":"b","x":1e400}`:        `{"token":"*","token":"*","x":1e400}`,
		`{"a":"token"}`:                              `{"a":"token"}`,
		`not JSON "token": "abc`:                     `not JSON "token": "***`,
		`{"x":1} trailing {"credentials":"abc"}`:     `{"x":1} trailing {"credentials":"***"}`,
		`{"x":,"token":"abc"}`:                       `{"x":,"token":"***"}`,
		`{"parts":["` + "\x00" + `"],"token":"abc"}`: `{"parts":["` + "\x00" + `"],"token":"***"}`,
		``: ``,
		// what breaks off
		`{"token":"abc`:                                  `{"token":"***`,
		`{"a":{"t\u006fken" : "ab\"c`:                    `{"a":{"t\u006fken" : "*****`,
		`{"token":"ab\`:                                  `{"token":"***`,
		`{"token":"ab\q c","credentials":"d"`:            `{"token":"******","credentials":"*"`,
		`{"token":`:                                      `{"token":`,
		`{"parts":[{"text":"he`:                          `{"parts":[{"text":"he`,
		"{\"token\":\"a\nbc\"}":                          `{"token":"****"}`,
		"data: {\"t\\u006Fken\":\"abc\"}\n\ndata: {\"cr": "data: {\"t\\u006Fken\":\"***\"}\n\ndata: {\"cr",
	} {
		before := strings.Clone(body)
		masked, n := traffic.MaskA2A([]byte(body))
		must.Hold(t, string(masked) == want && (n > 0) == (want != body) && body == before, "%s:\n%s, want\n%s (%d)", body, masked, want, n)
	}
}

func FuzzMaskA2A(f *testing.F) {
	f.Add([]byte(`{"token":"a"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		masked, n := traffic.MaskA2A(body)
		must.Need(t, len(masked) == len(body), "another length")
		again, more := traffic.MaskA2A(masked)
		must.Hold(t, more <= n && string(again) == string(masked), "%q, and masked again %q", masked, again)
	})
}

package token

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"jurat/evidence"
)

// refuser is a Backend that has nothing.
type refuser struct{}

func (refuser) Keys(context.Context) ([]Key, error) { return nil, nil }
func (refuser) Generate(context.Context, string, evidence.Algorithm) (Key, error) {
	return Key{}, ErrRefused
}
func (refuser) Key(context.Context, string) (Key, error) { return Key{}, ErrNotFound }
func (refuser) Sign(context.Context, string, []byte) (crypto.PublicKey, []byte, error) {
	return nil, nil, ErrUnavailable
}

type input struct{ *bytes.Reader }

func (input) Close() error { return nil }

func seeds(f *testing.F, texts ...string) {
	for _, text := range texts {
		f.Add(append([]byte{0, 0, 0, byte(len(text))}, text...))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
}

// FuzzMessage: a message that is taken is canonical JSON, and is written again as the same bytes. encode relies on the order in which the
// types declare their members, so the seeds have every member.
func FuzzMessage(f *testing.F) {
	key := `{"alg":"ES256","public":"AA==","uri":"a:b"}`
	for _, text := range []string{
		`{"alg":"ES256","data":"AA==","id":4294967295,"uri":"pkcs11:object=\"\\\u001f","v":1,"verb":"\t"}`,
		`{"error":{"code":"pin","message":"\b\u0000é <&>🔒"},"id":0,"key":` + key + `,"keys":[` + key + `,` + key + `],` +
			`"protection":{"kind":"k","local":true,"manufacturer":"m","model":"o","never_extractable":false,"serial":"s"},"signature":"AAAA","v":-1}`,
	} {
		var r request
		var a answer
		if err := decode([]byte(text), &r); err != nil && decode([]byte(text), &a) != nil {
			f.Fatalf("%s is not taken: %v", text, err)
		}
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, message := range []any{&request{}, &answer{}} {
			if decode(frame, message) != nil {
				continue
			}
			if form, err := evidence.Canonical(frame); err != nil || !bytes.Equal(form, frame) {
				t.Errorf("%q is taken: %v", frame, err)
			}
		}
	})
}

// FuzzServer: whatever a client sends, the server ends, and each of its answers can be read.
func FuzzServer(f *testing.F) {
	seeds(f, `{"id":1,"v":1,"verb":"keys"}`, `{"id":7,"uri":"pkcs11:object=a","v":1,"verb":"public"}`, `{"data":"AA==","id":2,"uri":"a:b","v":1,"verb":"sign"}`,
		`{"alg":"ES256","id":3,"uri":"a:b","v":1,"verb":"generate"}`)
	f.Fuzz(func(t *testing.T, sent []byte) {
		var out bytes.Buffer
		in := input{bytes.NewReader(sent)}
		_ = NewServer(refuser{}, slog.New(slog.DiscardHandler)).Serve(t.Context(), in, &out, in) // every end is allowed
		answers := readerOf(&out)
		for {
			frame, err := answers.next()
			if errors.Is(err, io.EOF) {
				return
			}
			var a answer
			if err = errors.Join(err, decode(frame, &a)); err != nil {
				t.Fatalf("the server answers %q: %v", frame, err)
			}
		}
	})
}

func readerOf(in io.Reader) *reader {
	c := newConn(bytes.NewReader(nil), io.Discard, func() error { return nil }, nil)
	<-c.over
	c.answers.in.Reset(in)
	return c.answers
}

// FuzzClient: whatever a helper answers, a call ends, and never with a signature that does not verify.
func FuzzClient(f *testing.F) {
	seeds(f, `{"id":1,"v":1}`, `{"id":1,"signature":"AA==","v":1}`, `{"error":{"code":"pin","message":"m"},"id":1,"v":1}`,
		`{"id":1,"key":{"alg":"ES256","public":"AA==","uri":"a:b"},"v":1}`, `{"id":1,"protection":{"kind":"k","local":true,"never_extractable":true},"v":1}`)
	key := evidence.NewMLDSA65(&[32]byte{1}).Public()
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, ask := range []func(*Client) error{
			func(c *Client) error { _, err := c.Sign(t.Context(), "a:b", key, []byte("text")); return err },
			func(c *Client) error { _, err := c.Generate(t.Context(), "a:b", evidence.MLDSA65); return err },
		} {
			near, far := net.Pipe()
			go func() {
				if _, err := far.Read(make([]byte, 4096)); err == nil {
					far.Write(sent) // the client may have closed
				}
				far.Close()
			}()
			c := &Client{timeout: time.Minute, helper: Helper{Socket: "/unused"}}
			c.conn = newConn(near, near, near.Close, nil)
			err := ask(c)
			if err == nil && !bytes.Contains(sent, []byte("public")) {
				t.Errorf("%q is taken", sent)
			}
			c.Close()
		}
	})
}

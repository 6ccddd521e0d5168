package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// A request asks for one thing: "key", "generate" or "sign". docs/token.md specifies it.
type request struct {
	ID        uint32 `json:"id"`
	Do        string `json:"do"`
	URI       string `json:"uri"`
	Algorithm string `json:"alg,omitempty"`    // of generate
	Digest    []byte `json:"digest,omitempty"` // of sign: SHA-256 of the message
}

// An answer has the id of its request.
type answer struct {
	ID        uint32   `json:"id"`
	Key       *keyInfo `json:"key,omitempty"`
	Signature []byte   `json:"signature,omitempty"`
	Error     *problem `json:"error,omitempty"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// keyInfo says of a key what jurat has to know.
type keyInfo struct {
	URI        string     `json:"uri"`
	Algorithm  string     `json:"alg"`
	Public     []byte     `json:"public"` // DER SubjectPublicKeyInfo
	Protection protection `json:"protection"`
}

// protection is what the token says of how it keeps a key.
type protection struct {
	Kind             string `json:"kind"`
	Manufacturer     string `json:"manufacturer,omitempty"`
	Model            string `json:"model,omitempty"`
	Serial           string `json:"serial,omitempty"`
	NeverExtractable bool   `json:"never_extractable"`
	Local            bool   `json:"local"`
}

const maxLine = 64 << 10

// serve answers requests, one a line, until there are no more. As many are answered at once as the token has sessions.
func serve(t *token, in io.Reader, out io.Writer, sessions int) error {
	requests, answers := make(chan request), make(chan answer, 64)
	var workers, writing sync.WaitGroup
	for range sessions {
		workers.Go(func() {
			for r := range requests {
				answers <- t.do(r)
			}
		})
	}
	writing.Go(func() { write(out, answers) })
	err := read(in, requests)
	close(requests)
	workers.Wait()
	close(answers)
	writing.Wait()
	return err
}

func read(in io.Reader, requests chan<- request) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		requests <- r
	}
	return lines.Err()
}

// write writes answers, several at once where several are ready. jurat is gone if that fails, and so the program ends.
func write(out io.Writer, answers <-chan answer) {
	buffered := bufio.NewWriterSize(out, maxLine)
	lines := json.NewEncoder(buffered)
	for a := range answers {
		err := lines.Encode(a)
		if err == nil && len(answers) == 0 {
			err = buffered.Flush()
		}
		if err != nil {
			die(err)
		}
	}
}

// die ends the program when the token or jurat is gone. jurat starts it again. Requests under way stay without an answer.
func die(err error) {
	fmt.Fprintf(os.Stderr, "jurat-pkcs11: %v\n", err)
	os.Exit(exitCannot)
}

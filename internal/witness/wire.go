package witness

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	maxProof   = 63        // the largest number of lines of a proof
	maxRequest = 128 << 10 // bytes; enough for a proof and a checkpoint with many signatures
	sizeMedia  = "text/x.tlog.size"
)

// FormatRequest returns the body of add-checkpoint.
func FormatRequest(r Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "old %d\n", r.Old)
	for _, node := range r.Proof {
		b.WriteString(base64.StdEncoding.EncodeToString(node[:]) + "\n")
	}
	return b.String() + "\n" + r.Signed
}

// ParseRequest parses the body of add-checkpoint strictly. It does not parse the checkpoint. Its errors have ErrMalformed in their chain.
func ParseRequest(body string) (Request, error) {
	var r Request
	head, signed, found := strings.Cut(body, "\n\n")
	if !found || signed == "" {
		return r, fmt.Errorf("%w: want an old size, a proof, an empty line and a checkpoint", ErrMalformed)
	}
	lines := strings.Split(head, "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	var err error
	if r.Old, err = parseSize(size); err != nil || !isOld {
		return r, fmt.Errorf("%w: line 1: want \"old \" and a size in decimal", ErrMalformed)
	}
	if len(lines)-1 > maxProof {
		return r, fmt.Errorf("%w: the proof has %d lines, want at most %d", ErrMalformed, len(lines)-1, maxProof)
	}
	for i, line := range lines[1:] {
		node, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(node) != tlog.HashSize || strings.Contains(line, "\r") {
			return r, fmt.Errorf("%w: line %d: want base64 of %d bytes", ErrMalformed, i+2, tlog.HashSize)
		}
		r.Proof = append(r.Proof, tlog.Hash(node))
	}
	r.Signed = signed
	return r, nil
}

// parseSize parses a size that is written in canonical decimal form.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
		err = fmt.Errorf("%q is not a size", text)
	}
	return n, err
}

package witness

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
)

// ErrUnavailable says that a witness did not answer, or not as the protocol demands.
var ErrUnavailable = errors.New("the witness gave no valid answer")

// A Remote is a client of one witness. It is safe for concurrent use.
type Remote struct {
	Key *operator.Witness

	prefix string // of its URLs, without a slash at the end

	mu    sync.Mutex // held while knows is read or changed
	knows int64      // the size that the witness knows, by its last answer
}

// NewRemote makes a Remote. prefix is the witness's submission prefix. It returns an error unless prefix is an https URL, or an http URL in
// a private network.
func NewRemote(prefix string, key *operator.Witness) (*Remote, error) {
	u, err := url.Parse(prefix)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("witness: %q: want https://, a host and optionally a path", prefix)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback() && !ip.IsPrivate()) {
		return nil, fmt.Errorf("witness: %q: want https; http is only for witnesses in a private network", prefix)
	}
	return &Remote{Key: key, prefix: strings.TrimRight(prefix, "/")}, nil
}

// Ask asks the witness to cosign a checkpoint of this size. prove makes a proof from an earlier size. A *ConflictError says that the
// witness knows more of the log than the checkpoint covers, or another history. Other errors include ErrUnavailable, ErrUnknownLog,
// ErrSignature and ErrProof.
func (r *Remote) Ask(ctx context.Context, signed string, size int64, prove func(ctx context.Context, old, size int64) ([]tlog.Hash, error)) (operator.Cosignature, error) {
	old := r.known(size)
	for attempt := 0; ; attempt++ {
		proof, err := prove(ctx, old, size)
		if err != nil {
			return operator.Cosignature{}, err
		}
		line, err := r.post(ctx, Request{Old: old, Proof: proof, Signed: signed})
		var conflict *ConflictError
		if errors.As(err, &conflict) && conflict.Size <= size && conflict.Size != old && attempt < 2 {
			old = conflict.Size // now the size is known, unless another node asks at the same time
			continue
		}
		if err != nil {
			return operator.Cosignature{}, err
		}
		cosignature, err := r.check(signed, line)
		if err == nil {
			r.learn(size)
		}
		return cosignature, err
	}
}

func (r *Remote) known(most int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.knows > most {
		return 0
	}
	return r.knows
}

func (r *Remote) learn(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.knows = size
}

// check verifies the witness's answer against its key. It drops lines of other signers.
func (r *Remote) check(signed, lines string) (operator.Cosignature, error) {
	text, _, _ := strings.Cut(signed, "\n\n")
	found, err := operator.Cosignatures(text+"\n\n"+lines, r.Key)
	if err != nil {
		return operator.Cosignature{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(found) == 0 {
		return operator.Cosignature{}, fmt.Errorf("%w: it has not signed with the key of %s", ErrUnavailable, r.Key.Name())
	}
	return found[0], nil
}

func (r *Remote) post(ctx context.Context, request Request) (string, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.prefix+"/add-checkpoint", strings.NewReader(FormatRequest(request)))
	if err != nil {
		return "", err
	}
	post.Header.Set("Content-Type", "text/plain; charset=utf-8")
	answer, err := http.DefaultClient.Do(post)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRequest))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return string(body), nil
	case http.StatusConflict:
		size, err := parseSize(strings.TrimSuffix(string(body), "\n"))
		if err != nil || answer.Header.Get("Content-Type") != sizeMedia {
			return "", fmt.Errorf("%w: status 409 without a size", ErrUnavailable)
		}
		return "", says(&ConflictError{Size: size, Forked: size == request.Old})
	case http.StatusNotFound:
		return "", says(fmt.Errorf("%w: the witness does not know this log", ErrUnknownLog))
	case http.StatusForbidden:
		return "", says(fmt.Errorf("%w: the witness knows another key of this log", ErrSignature))
	case http.StatusUnprocessableEntity:
		return "", says(fmt.Errorf("%w: the witness has seen another history", ErrProof))
	}
	return "", fmt.Errorf("%w: status %d", ErrUnavailable, answer.StatusCode)
}

// says marks an error that rests on the witness's word alone: a witness does not sign its refusals.
func says(err error) error { return fmt.Errorf("the witness says, without proof: %w", err) }

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

package installation

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/token"
)

// A logKey signs checkpoints.
type logKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string // the verifier key in package note's form
}

// logName begins the origin of a log. An id follows it, because every log needs an origin of its own.
const logName = "jurat/log/"

// createLogKey makes the log's key: in a file in package note's form, or on a token.
func createLogKey(ctx context.Context, files filestore.Store, m maker) (logKey, error) {
	private, public, err := newLogKey(ctx, m)
	if err != nil {
		return logKey{}, fmt.Errorf("making the log's key: %w", err)
	}
	if err := files.Create(ctx, LogKeyFile, []byte(private+"\n"+public+"\n")); err != nil {
		return logKey{}, err
	}
	return openLogKey(ctx, files, m.helpers)
}

func newLogKey(ctx context.Context, m maker) (private, public string, err error) {
	if m.token == nil {
		return note.GenerateKey(nil, logName+m.id)
	}
	key, reference, err := m.make(ctx, "log", evidence.Ed25519)
	if err != nil {
		return "", "", err
	}
	public, err = note.NewEd25519VerifierKey(logName+m.id, key.Public().(ed25519.PublicKey))
	return strings.TrimSuffix(string(reference), "\n"), public, err
}

func openLogKey(ctx context.Context, files filestore.Store, helpers *token.Helpers) (logKey, error) {
	text, err := files.Read(ctx, LogKeyFile)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	onToken := strings.HasPrefix(string(text), "-----BEGIN ")
	if n := len(lines); n < 3 || lines[n-1] != "" || n > 3 && !onToken {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", files.Where(LogKeyFile))
	}
	k := logKey{public: lines[len(lines)-2]}
	var signerErr, verifierErr error
	k.verifier, verifierErr = note.NewVerifier(k.public)
	if onToken {
		k.signer, signerErr = tokenSigner(ctx, files, helpers, k)
	} else {
		k.signer, signerErr = note.NewSigner(lines[0])
	}
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", files.Where(LogKeyFile), err)
	}
	return k, nil
}

// noteSigner signs checkpoints with a key on a token. It is a note.Signer.
type noteSigner struct {
	note.Verifier // gives the key's name and hash
	key           crypto.Signer
}

func (s noteSigner) Sign(message []byte) ([]byte, error) {
	return s.key.Sign(nil, message, crypto.Hash(0))
}

// tokenSigner returns the signer of a log whose key is on a token. It returns an error if the key is not the verifier's.
func tokenSigner(ctx context.Context, files filestore.Store, helpers *token.Helpers, k logKey) (note.Signer, error) {
	if k.verifier == nil {
		return nil, nil // the caller reports the verifier's error
	}
	key, rest, err := readSigner(ctx, files, helpers, LogKeyFile)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok || rest != k.public+"\n" {
		return nil, errors.New("want the reference to an Ed25519 key, and one line with the verifier key")
	}
	if same, err := note.NewEd25519VerifierKey(k.verifier.Name(), public); err != nil || same != k.public {
		return nil, errors.New("the key on the token does not match the verifier key")
	}
	return noteSigner{k.verifier, key}, nil
}

// LogVerifier returns the verifier of the checkpoints of an installation's log. It returns an error if the log's key
// is missing or cannot be read.
func LogVerifier(ctx context.Context, files filestore.Store) (note.Verifier, error) {
	log, err := openLogKey(ctx, files, &token.Helpers{}) // this key is never asked to sign
	return log.verifier, err
}

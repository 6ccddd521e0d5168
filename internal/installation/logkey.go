package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/filestore"
)

// A logKey signs checkpoints.
type logKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string // the verifier key in package note's form
}

// logName begins the origin of a log. An id follows it, because every log needs an origin of its own.
const logName = "jurat/log/"

// createLogKey makes the log's key, in a file in package note's form. It is never on a token: checkpoints demand Ed25519, and helpers sign with
// ES256 and RS256.
func createLogKey(ctx context.Context, files filestore.Store, id string) (logKey, error) {
	private, public, err := note.GenerateKey(nil, logName+id)
	if err != nil {
		return logKey{}, fmt.Errorf("making the log's key: %w", err)
	}
	if err := files.Create(ctx, LogKeyFile, []byte(private+"\n"+public+"\n")); err != nil {
		return logKey{}, err
	}
	return openLogKey(ctx, files)
}

func openLogKey(ctx context.Context, files filestore.Store) (logKey, error) {
	text, err := files.Read(ctx, LogKeyFile)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", files.Where(LogKeyFile))
	}
	k := logKey{public: lines[1]}
	var signerErr, verifierErr error
	k.signer, signerErr = note.NewSigner(lines[0])
	k.verifier, verifierErr = note.NewVerifier(k.public)
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", files.Where(LogKeyFile), err)
	}
	return k, nil
}

// LogVerifier returns the verifier of the checkpoints of an installation's log. It returns an error if the log's key
// is missing or cannot be read.
func LogVerifier(ctx context.Context, files filestore.Store) (note.Verifier, error) {
	log, err := openLogKey(ctx, files)
	return log.verifier, err
}

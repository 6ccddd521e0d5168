package docket

import (
	"context"
	"errors"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/verify"
)

// ErrNotRecorded says that no recorder saw anything of what is asked for.
var ErrNotRecorded = errors.New("no recorder saw anything of it")

// FindChain finds what a name stands for: a chain of the log, from its first record on, or a record in one, by its id or digest, with its
// number in the chain. number is 0 for a chain. It returns ErrNone, or the ledger's ErrNotFound, wrapped, if there is nothing to show.
func FindChain(ctx context.Context, l *ledger.Ledger, name string) (chain string, number int64, err error) {
	for r, err := range l.ChainRecords(ctx, name) {
		if err != nil {
			return "", 0, err
		}
		if verify.ByRecorder(r) {
			return name, 0, nil
		}
		return "", 0, ErrNotRecorded
	}
	r, err := recordOf(ctx, l, name)
	switch {
	case err != nil:
		return "", 0, err
	case !verify.ByRecorder(r) || r.Payload.ChainID == "":
		return "", 0, ErrNotRecorded
	}
	for other, err := range l.ChainRecords(ctx, r.Payload.ChainID) {
		if err != nil {
			return "", 0, err
		}
		if number++; other.Digest == r.Digest {
			break
		}
	}
	return r.Payload.ChainID, number, nil
}

func recordOf(ctx context.Context, l *ledger.Ledger, name string) (*evidence.Record, error) {
	var digest evidence.Digest
	if digest.UnmarshalText([]byte(name)) == nil {
		return l.RecordByDigest(ctx, digest)
	}
	return l.Record(ctx, name)
}

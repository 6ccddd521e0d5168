package ledger

import (
	"context"
	"fmt"
	"strings"

	"jurat/internal/fault"
)

// Cosigned returns the last checkpoint that witnesses have cosigned, with their cosignatures, or "" if there is none.
// It never covers more than the log has signed.
func (l *Ledger) Cosigned(ctx context.Context) (string, error) {
	kept, err := l.cosigned(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the cosigned checkpoint: %w", err)
	}
	return kept.signed, nil
}

func (l *Ledger) cosigned(ctx context.Context) (signedHead, error) {
	if l.cfg.Cosigned == nil {
		return signedHead{}, nil
	}
	signed, err := l.cfg.Cosigned.Load(ctx)
	if err != nil || signed == "" {
		return signedHead{}, err
	}
	head, err := l.cfg.open(signed)
	if err != nil {
		return signedHead{}, err
	}
	if head.Size > l.signedSize.Load() {
		size, err := l.lookSigned(ctx)
		if err != nil || head.Size > size {
			return signedHead{}, err // the log was restored from a backup, and witnesses have seen more
		}
	}
	return signedHead{signed: signed, head: head}, nil
}

// KeepCosigned stores a checkpoint of this log with the cosignatures of witnesses, in place of the earlier one. It
// returns ErrReadOnly, wrapped, if there is no place for it.
func (l *Ledger) KeepCosigned(ctx context.Context, signed string) (err error) {
	defer fault.While(&err, "storing the cosigned checkpoint")
	if l.cfg.Cosigned == nil {
		return fmt.Errorf("%w: this installation stores no cosigned checkpoints", ErrReadOnly)
	}
	if _, err := l.SizeAt(ctx, signed); err != nil {
		return err
	}
	return l.cfg.Cosigned.Store(ctx, signed)
}

// withCosignatures returns the checkpoint with the cosignatures of witnesses, if it has any.
func (l *Ledger) withCosignatures(ctx context.Context, signed string) (string, error) {
	kept, err := l.cosigned(ctx)
	if err != nil {
		return "", err
	}
	if textOf(kept.signed) == textOf(signed) {
		return kept.signed, nil
	}
	return signed, nil
}

// textOf is the text of a signed note, without its signatures.
func textOf(signed string) string {
	text, _, _ := strings.Cut(signed, "\n\n")
	return text
}

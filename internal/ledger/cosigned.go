package ledger

import (
	"context"
	"fmt"
	"strings"
)

// Cosigned returns the last checkpoint that witnesses have cosigned, with what they have said, or "" when there is none. It covers
// nothing that the log has not signed.
func (l *Ledger) Cosigned(ctx context.Context) (string, error) {
	kept, err := l.cosigned(ctx)
	if err != nil {
		return "", fmt.Errorf("reading what witnesses have cosigned: %w", err)
	}
	return kept.signed, nil
}

func (l *Ledger) cosigned(ctx context.Context) (anchor, error) {
	if l.cfg.Cosigned == nil {
		return anchor{}, nil
	}
	signed, err := l.cfg.Cosigned.Load(ctx)
	if err != nil || signed == "" {
		return anchor{}, err
	}
	head, err := l.cfg.open(signed)
	if err != nil {
		return anchor{}, err
	}
	if head.Size > l.signedSize.Load() {
		size, err := l.lookSigned(ctx)
		if err != nil || head.Size > size {
			return anchor{}, err // a log that went back in time, of which witnesses know more
		}
	}
	return anchor{signed: signed, head: head}, nil
}

// KeepCosigned keeps a checkpoint of this log with what witnesses have said of it, in the place of an earlier one.
func (l *Ledger) KeepCosigned(ctx context.Context, signed string) error {
	if err := l.keepCosigned(ctx, signed); err != nil {
		return fmt.Errorf("keeping what witnesses have cosigned: %w", err)
	}
	return nil
}

func (l *Ledger) keepCosigned(ctx context.Context, signed string) error {
	if l.cfg.Cosigned == nil {
		return fmt.Errorf("%w: there is no place for it", ErrReadOnly)
	}
	if _, err := l.SizeAt(ctx, signed); err != nil {
		return err
	}
	return l.cfg.Cosigned.Store(ctx, signed)
}

// withCosignatures is a checkpoint with what witnesses have said of it, if they have.
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

// textOf is what a signed note says.
func textOf(signed string) string {
	text, _, _ := strings.Cut(signed, "\n\n")
	return text
}

package ledger

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// Checkpoint returns a signed checkpoint over all that is committed. While nothing was committed since the last one,
// that one is returned, and if witnesses have cosigned it, with what they have said.
func (l *Ledger) Checkpoint(ctx context.Context) (string, error) {
	signed, err := l.checkpoint(ctx)
	if err == nil {
		signed, err = l.withCosignatures(ctx, signed)
	}
	if err != nil {
		return "", fmt.Errorf("making checkpoint: %w", err)
	}
	return signed, nil
}

func (l *Ledger) checkpoint(ctx context.Context) (string, error) {
	if l.refuse != nil {
		return "", l.refuse
	}
	if err := l.signing.Acquire(ctx); err != nil {
		return "", err
	}
	defer l.signing.Release()
	for {
		signed, err := l.advance(ctx)
		if errors.Is(err, ErrConflict) {
			continue // another process has signed meanwhile, so there is progress
		}
		if err != nil {
			return "", err
		}
		return signed, l.publish(ctx, signed)
	}
}

// advance brings the checkpoint in the store up to what is committed.
func (l *Ledger) advance(ctx context.Context) (string, error) {
	known := *l.known.Load() // before the head is read, which must contain it
	old, err := l.cfg.Store.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	before, err := l.cfg.open(old)
	if err != nil {
		return "", err
	}
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return "", err
	}
	if err := l.maySign(ctx, head, before, known); err != nil {
		return "", err
	}
	if head.Size == before.Size {
		return old, nil
	}
	if l.fixed != nil { // what is signed must be kept, or the log could go back on it
		return "", fmt.Errorf("%w; the last checkpoint covers %d of %d records, and a new one could not be kept: make it where the log can be written", l.fixed, before.Size, head.Size)
	}
	next, err := l.sign(head)
	if err != nil {
		return "", err
	}
	return next, l.replace(ctx, old, next)
}

// maySign checks that a checkpoint over this head contradicts nothing that was ever signed or acknowledged.
func (l *Ledger) maySign(ctx context.Context, head storage.Head, before ...storage.Head) error {
	hashes := l.cfg.hashes(ctx)
	if _, err := loadTree(head, hashes); err != nil {
		return err
	}
	for _, b := range before {
		if err := contains(head, b, hashes); err != nil {
			return err
		}
	}
	return nil
}

// replace stores a checkpoint that is signed and that nobody has seen. A crash before it is stored loses nothing but
// the signature. After that the checkpoint counts, and Open publishes it.
func (l *Ledger) replace(ctx context.Context, old, next string) error {
	err := l.cfg.Store.SetCheckpoint(ctx, old, next)
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if now, readErr := l.cfg.Store.Checkpoint(ctx); readErr == nil && now == next {
		return nil // it was stored all the same
	}
	return err
}

func (l *Ledger) sign(head storage.Head) (string, error) {
	if l.cfg.Signer == nil {
		return "", fmt.Errorf("%w: the log's private key is missing", ErrReadOnly)
	}
	signed, err := operator.SignCheckpoint(operator.Checkpoint{Origin: l.Origin(), Size: head.Size, Root: head.Root}, l.cfg.Signer)
	if err != nil {
		return "", err
	}
	if _, err := l.cfg.open(signed); err != nil { // once stored, such a checkpoint would lock everybody out
		return "", fmt.Errorf("reading back what was signed: %w", err)
	}
	return signed, nil
}

// LastPublished returns the last checkpoint that was published, with what witnesses have said of it, and "" if there is none. Where the log can
// be written, Checkpoint returns a later one.
func (l *Ledger) LastPublished(ctx context.Context) (string, error) {
	signed, err := l.lastPublished(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the published checkpoint: %w", err)
	}
	return signed, nil
}

func (l *Ledger) lastPublished(ctx context.Context) (string, error) {
	if l.refuse != nil {
		return "", l.refuse
	}
	if l.cfg.Published == nil {
		return "", nil
	}
	signed, err := l.cfg.Published.Load(ctx)
	if err != nil || signed == "" {
		return "", err
	}
	if _, err := l.SizeAt(ctx, signed); err != nil {
		return "", err
	}
	return l.withCosignatures(ctx, signed)
}

// publish makes the checkpoint known outside the store. The store has it already, so that a crash in between leaves
// an older one published, which is as true, and which Open replaces.
func (l *Ledger) publish(ctx context.Context, signed string) error {
	if l.cfg.Published == nil || l.fixed != nil {
		return nil
	}
	for signed != l.published {
		if err := l.cfg.Published.Store(ctx, signed); err != nil {
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				err = fmt.Errorf("%w: %w", ErrDiskFull, err)
			}
			return fmt.Errorf("publishing checkpoint: %w", err)
		}
		l.published = signed
		// Another process may have published a later one a moment ago, which is now overwritten. It was in the store
		// by then: whoever publishes last looks there and finds it.
		latest, err := l.cfg.Store.Checkpoint(ctx)
		if err != nil {
			return fmt.Errorf("publishing checkpoint: %w", err)
		}
		signed = latest
	}
	return nil
}

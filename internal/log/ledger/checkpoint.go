package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"jurat/evidence/operator"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
)

// Checkpoint returns a signed checkpoint over all that is committed. If nothing was committed since the last one, it
// returns that one, with the cosignatures of witnesses if it has any. It returns ErrReadOnly, wrapped, if a new one
// is needed but cannot be signed or stored.
func (l *Ledger) Checkpoint(ctx context.Context) (_ string, err error) {
	defer fault.While(&err, "making checkpoint")
	signed, err := l.checkpoint(ctx)
	if err != nil {
		return "", err
	}
	return l.withCosignatures(ctx, signed)
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
			continue // another process has signed meanwhile, so this loop ends
		}
		if err != nil {
			return "", err
		}
		return signed, l.publish(ctx, signed)
	}
}

// advance makes the checkpoint in the store cover all that is committed.
func (l *Ledger) advance(ctx context.Context) (string, error) {
	known := *l.known.Load() // read before the head, which must contain it
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
	if l.fixed != nil { // a signed checkpoint must be stored, or the log could later contradict it
		return "", fmt.Errorf("%w: the last checkpoint covers %d of %d records, and no new one can be stored: use a writable log", l.fixed, before.Size, head.Size)
	}
	next, err := l.sign(head)
	if err != nil {
		return "", err
	}
	return next, l.replace(ctx, old, next)
}

// maySign checks that a checkpoint over this head contradicts no checkpoint that was signed, and no record that was
// acknowledged.
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

// replace stores a signed checkpoint that no reader has seen yet. A crash before it is stored loses only the
// signature. A crash after that loses nothing: Open publishes the checkpoint.
func (l *Ledger) replace(ctx context.Context, old, next string) error {
	err := l.cfg.Store.SetCheckpoint(ctx, old, next)
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if now, readErr := l.cfg.Store.Checkpoint(ctx); readErr == nil && now == next {
		return nil // it was stored despite the error
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
	if _, err := l.cfg.open(signed); err != nil { // a stored checkpoint that does not open would make the log unusable
		return "", fmt.Errorf("reading back what was signed: %w", err)
	}
	return signed, nil
}

// LastPublished returns the last published checkpoint, with the cosignatures of witnesses, or "" if there is none. If
// the log can be written, Checkpoint returns a later one.
func (l *Ledger) LastPublished(ctx context.Context) (_ string, err error) {
	defer fault.While(&err, "reading the published checkpoint")
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

// publish stores the checkpoint outside the store. The store has it already. After a crash in between, an older
// checkpoint is published, which is still true, and Open replaces it.
func (l *Ledger) publish(ctx context.Context, signed string) (err error) {
	defer fault.While(&err, "publishing checkpoint")
	if l.cfg.Published == nil || l.fixed != nil {
		return nil
	}
	for signed != l.published {
		if err := l.cfg.Published.Store(ctx, signed); err != nil {
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				err = fmt.Errorf("%w: %w", ErrDiskFull, err)
			}
			return err
		}
		l.published = signed
		// Another process may have published a later one a moment ago, which this call has overwritten. It was in the
		// store by then, so the last process to publish finds it there.
		if signed, err = l.cfg.Store.Checkpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Cosigned returns the last checkpoint that witnesses have cosigned, with their cosignatures, or "" if there is none.
// It never covers more than the log has signed.
func (l *Ledger) Cosigned(ctx context.Context) (_ string, err error) {
	defer fault.While(&err, "reading the cosigned checkpoint")
	kept, err := l.cosigned(ctx)
	return kept.signed, err
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

// CheckpointFile is a Published in a file; it is the file's path. The file should not be restored from the same
// backup as the database: then it could not show that the database was set back.
type CheckpointFile string

// Load reads the file. It returns "" if the file is missing. Its errors are those of reading the file, and the
// context's.
func (f CheckpointFile) Load(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	content, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// Store replaces the file. A crash at any point leaves the old or the new content. Its errors are those of writing
// the file, and the context's.
func (f CheckpointFile) Store(ctx context.Context, checkpoint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return atomicfile.Replace(string(f), []byte(checkpoint), 0o644)
}

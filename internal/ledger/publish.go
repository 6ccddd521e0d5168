package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"jurat/internal/atomicfile"
)

// CheckpointFile is a Published in a file, of which it is the path. It should not be where the database is restored
// from one backup together with it: a file that goes back in time with the database tells nothing.
type CheckpointFile string

// Load reads the file. One that is missing is "".
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

// Store replaces the file. A crash at any point leaves the old or the new content, never a part of one.
func (f CheckpointFile) Store(ctx context.Context, checkpoint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return atomicfile.Replace(string(f), []byte(checkpoint), 0o644)
}

package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"jurat/internal/atomicfile"
)

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

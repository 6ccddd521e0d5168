package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
)

// checkOut refuses a place for the case file that would be found wrong only when the trial is over and paid for, and
// one where something else would be lost.
func checkOut(file string) error {
	if file == "-" {
		return hint(errors.New("--out: the case file does not go to standard output"), "'jurat log prove TRIAL' prints it")
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkFolder(filepath.Dir(file))
	case err != nil:
		return fmt.Errorf("--out: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--out: %s exists and is not a file", file)
	}
	there, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if len(there) > 0 && !bytes.Contains(there, []byte(evidence.BundleFormat)) {
		return hint(fmt.Errorf("--out: %s exists and is not a case file", file), "name another file, or remove it yourself")
	}
	return checkFolder(filepath.Dir(file))
}

// checkFolder makes a folder and tries to write there.
func checkFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	trial, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return fmt.Errorf("--out: cannot write in %s: %w", folder, errors.Unwrap(err))
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// leave writes the case file: everything that stands in the trial's chain, proved against one checkpoint.
func leave(ctx context.Context, i *installation.Installation, id, file string) (string, error) {
	records, err := i.Ledger.Chain(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := i.Witnesses.Cosign(ctx); err != nil { // which takes no longer than a witness may; without witnesses nothing
		return "", err
	}
	bundle, err := i.Ledger.Prove(ctx, records...)
	if err != nil {
		return "", err
	}
	doc, err := bundle.Marshal()
	if err != nil {
		return "", err
	}
	if file == "" {
		file = i.CaseFile(id)
	}
	if err := atomicfile.Replace(file, doc, 0o644); err != nil {
		return "", hint(err, "the trial is in the log; 'jurat log prove %s' prints its case file", id)
	}
	return file, nil
}

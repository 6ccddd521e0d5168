package installation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"jurat/evidence"
	"jurat/verify"
)

const claimsFolder = "claims"

// ErrClaimed says that a process, this one or another, is at work on a trial.
var ErrClaimed = errors.New("somebody is at work on it at this moment")

// Claim keeps every other process from acting in a trial until release is called or this process ends, however it ends:
// the operating system holds the claim. An empty file is all that a crash leaves of it, and claims nothing.
func (i *Installation) Claim(trialID string) (release func(), err error) {
	file, err := i.claimFile(trialID)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("claiming trial: %w", err)
	}
	if release, err = claim(file); err != nil {
		return nil, fmt.Errorf("claiming trial %s: %w", trialID, err)
	}
	return release, nil
}

func (i *Installation) claimFile(trialID string) (string, error) {
	if err := evidence.CheckName(trialID); err != nil || filepath.Base(trialID) != trialID || trialID[0] == '.' {
		return "", fmt.Errorf("claiming trial %q: not the id of a trial", trialID)
	}
	return filepath.Join(i.path(claimsFolder), trialID), nil
}

// Claimed reports whether somebody is at work on a trial. To ask claims nothing: whoever is about to begin is not kept from it.
func (i *Installation) Claimed(trialID string) (bool, error) {
	file, err := i.claimFile(trialID)
	if err != nil {
		return false, err
	}
	is, err := claimed(file)
	if err != nil {
		return false, fmt.Errorf("looking for who claims trial %s: %w", trialID, err)
	}
	return is, nil
}

// Vouch finds out whether records are as this installation's own keys signed them. The log notices by itself that a
// record changed which one of its checkpoints covers; of what came after the last one only the signatures speak.
func (i *Installation) Vouch(records ...*evidence.Record) error {
	trust, err := i.Trust()
	if err != nil {
		return err
	}
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication} {
			if f := report.Of(g); f.Status != verify.Proved {
				return fmt.Errorf("record %s: %s %s: %s", r.Payload.RecordID, g, f.Status, f.Reason)
			}
		}
	}
	return nil
}

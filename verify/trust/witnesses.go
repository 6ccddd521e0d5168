package trust

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// prepareWitnesses refuses a quorum that cannot be met, keys that would count twice, and keys of logs.
func (t *Trust) prepareWitnesses() error {
	for i, text := range t.Witnesses {
		w, err := operator.ParseWitness(text)
		if err != nil {
			return fmt.Errorf("witnesses/%d: %w", i, err)
		}
		same := func(other *operator.Witness) bool { return other.PublicKey().Equal(w.PublicKey()) }
		if slices.ContainsFunc(t.witnesses, same) {
			return fmt.Errorf("witnesses/%d: the key is there twice, and would count as two witnesses", i)
		}
		if slices.ContainsFunc(t.Logs, func(log string) bool { return strings.HasSuffix(log, asLogKey(w.PublicKey())) }) {
			return fmt.Errorf("witnesses/%d: the key is a log's, and a log cannot be its own witness", i)
		}
		t.witnesses = append(t.witnesses, w)
	}
	if len(t.Witnesses) > 0 != (t.Quorum > 0) || t.Quorum < 0 || t.Quorum > len(t.Witnesses) {
		return fmt.Errorf("quorum is %d of %d witnesses: want at least 1, and at most the number of witnesses",
			t.Quorum, len(t.Witnesses))
	}
	return nil
}

// asLogKey returns the end of the verifier key of a log with this public key: it has the type byte of logs.
func asLogKey(key ed25519.PublicKey) string {
	return "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, key...))
}

// ErrUnknownLog says that no log of the trust file signed the checkpoint.
var ErrUnknownLog = errors.New("the checkpoint is signed by no log that the trust file names")

// OpenCheckpoint reads a checkpoint that a log of the trust file signed. Its error has ErrUnknownLog in its chain if none did, ErrForged
// if the note is damaged, and ErrNoCheckpoint if the log signed something else. It does not ask for witnesses.
func (t *Trust) OpenCheckpoint(signed string) (operator.Checkpoint, error) {
	if err := evidence.CheckEncoding([]byte(signed)); err != nil {
		return operator.Checkpoint{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	opened, err := operator.OpenNote(signed, t.logVerifiers())
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		return operator.Checkpoint{}, ErrUnknownLog
	case err != nil:
		return operator.Checkpoint{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	tree, err := operator.ParseCheckpoint(opened.Text)
	if err != nil {
		return operator.Checkpoint{}, fmt.Errorf("%w: %w", ErrNoCheckpoint, err)
	}
	if !slices.ContainsFunc(opened.Sigs, func(s note.Signature) bool { return s.Name == tree.Origin }) {
		return operator.Checkpoint{}, fmt.Errorf("%w: it names the log %s, and is signed with another log's key", ErrNoCheckpoint, tree.Origin)
	}
	return tree, nil
}

// ErrNotWitnessed says that fewer witnesses than the trust file demands have cosigned a checkpoint.
var ErrNotWitnessed = errors.New("too few witnesses have cosigned the checkpoint")

// Witnessed returns the cosignatures of the trust file's witnesses on a checkpoint, up to the moment of checking
// (zero: none is given). The error has ErrNotWitnessed in its chain if there are too few. Any other error says that a
// cosignature was forged. A cosignature that is later by more than MaxSkew does not count: the witness's clock is
// wrong, or a thief of its key backdates later use.
func (t *Trust) Witnessed(signed string, at time.Time) ([]operator.Cosignature, error) {
	said, err := operator.Cosignatures(signed, t.witnesses...)
	if err != nil {
		return nil, err
	}
	var found []operator.Cosignature
	var missing []string
	for _, w := range t.witnesses {
		i := slices.IndexFunc(said, func(c operator.Cosignature) bool { return c.Witness == w })
		switch {
		case i < 0:
			missing = append(missing, w.Name())
		case !at.IsZero() && said[i].IsAfter(at.Add(MaxSkew)):
			missing = append(missing, fmt.Sprintf("%s (its cosignature is of %s, and it is checked at %s: one of the two clocks is wrong)", w.Name(), said[i].Stated(), utc(at)))
		default:
			found = append(found, said[i])
		}
	}
	if len(found) >= t.Quorum {
		return found, nil
	}
	return found, fmt.Errorf("%w: %d of the %d that the trust file demands; without %s", ErrNotWitnessed, len(found), t.Quorum, strings.Join(missing, ", "))
}

// ErrForged says that a checkpoint is not what its log signed.
var ErrForged = errors.New("the checkpoint is not what the log signed")

// ErrNoCheckpoint says that a log of the trust file signed something other than a checkpoint of its own, such as one with more entries
// than a log can have.
var ErrNoCheckpoint = errors.New("the log's key has signed something that is not a checkpoint of a log")

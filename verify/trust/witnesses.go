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

// prepareWitnesses refuses demands that mean nothing, or less than they seem to.
func (t *Trust) prepareWitnesses() error {
	for i, text := range t.Witnesses {
		w, err := operator.ParseWitness(text)
		if err != nil {
			return fmt.Errorf("reading trust file: witnesses/%d: %w", i, err)
		}
		same := func(other *operator.Witness) bool { return other.PublicKey().Equal(w.PublicKey()) }
		if slices.ContainsFunc(t.witnesses, same) {
			return fmt.Errorf("reading trust file: witnesses/%d: the key is there twice, and would count for two", i)
		}
		if slices.ContainsFunc(t.Logs, func(log string) bool { return strings.HasSuffix(log, asLogKey(w.PublicKey())) }) {
			return fmt.Errorf("reading trust file: witnesses/%d: the key is a log's, and nobody is his own witness", i)
		}
		t.witnesses = append(t.witnesses, w)
	}
	if len(t.Witnesses) > 0 != (t.Quorum > 0) || t.Quorum < 0 || t.Quorum > len(t.Witnesses) {
		return fmt.Errorf("reading trust file: quorum is %d of %d witnesses: it says how many of them must have cosigned, at least 1 and not more than there are",
			t.Quorum, len(t.Witnesses))
	}
	return nil
}

// asLogKey is how a log's verifier key ends that has this public key: with the type byte of logs.
func asLogKey(key ed25519.PublicKey) string {
	return "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, key...))
}

var ErrUnknownLog = errors.New("the checkpoint is signed by no log that the trust file names")

// OpenCheckpoint reads a signed checkpoint, and returns it only if a log of the trust file signed it. The error is ErrNoCheckpoint
// if it signed something else. Whether it is witnessed is another question.
func (t *Trust) OpenCheckpoint(signed string) (operator.Checkpoint, error) {
	if err := evidence.CheckEncoding([]byte(signed)); err != nil {
		return operator.Checkpoint{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	opened, err := note.Open([]byte(signed), t.logVerifiers())
	if err == nil {
		err = oneForm(opened)
	}
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
		return operator.Checkpoint{}, fmt.Errorf("%w: it speaks for the log %s, and is signed with the key of another", ErrNoCheckpoint, tree.Origin)
	}
	return tree, nil
}

// ErrNotWitnessed says that fewer witnesses than the trust file demands have cosigned a checkpoint.
var ErrNotWitnessed = errors.New("too few witnesses have cosigned the checkpoint")

// Witnessed returns what the trust file's witnesses have said of a checkpoint by the moment of checking (zero: none is given): with
// ErrNotWitnessed in the error's chain if they are too few, and with any other error if somebody has made up what one of them has said.
// What is of a later time than clocks explain was said by a witness whose clock is wrong, or whose key somebody has who prepares for
// when it is missed. It does not count.
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

var ErrForged = errors.New("the checkpoint is not what the log signed")

// ErrNoCheckpoint says that a log of the trust file has signed what is no checkpoint of its own, such as one of more entries than there
// can be.
var ErrNoCheckpoint = errors.New("the log's key has signed what is no checkpoint of a log")

// oneForm refuses a signed note that says the same in other bytes: package note takes base64 loosely.
func oneForm(opened *note.Note) error {
	for _, s := range slices.Concat(opened.Sigs, opened.UnverifiedSigs) {
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return fmt.Errorf("the signature of %s is not in the one form that it has: %w", s.Name, err)
		}
	}
	return nil
}

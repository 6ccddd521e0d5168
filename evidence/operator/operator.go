// Package operator reads and writes what the operator of a log states under its own key, and what witnesses sign
// beside it.
//
// Acts of the operator are records like all others. The response of each is a body of this package: [KeyEventBody],
// [LateStampBody], [CheckpointStampBody], [ErasureBody], [AccessEventBody], [RefusalBody], [TrialEventBody],
// and [ExpiryBody]. [Check] reads one by the rules of its action type.
//
// A [Checkpoint] states the length and the root hash of the log. A [Consistency] proves that one checkpoint's log is
// the beginning of another's. A [Witness] cosigns the checkpoints of a log that it has seen grow.
//
// Reading is strict: what is read is written back in the same bytes.
package operator

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Chains of the operator's acts.
const (
	KeysChain        = evidence.OperatorPrefix + "keys"
	CheckpointsChain = evidence.OperatorPrefix + "checkpoints"
)

// MaxLateStamps is how many time stamps one late_stamp may list.
const MaxLateStamps = 500

// LateStampBody is the response of a late_stamp.
type LateStampBody struct {
	Stamps []LateStamped `json:"stamps"` // 1 to MaxLateStamps
}

func (b *LateStampBody) checkSize() error {
	if n := len(b.Stamps); n < 1 || n > MaxLateStamps {
		return fmt.Errorf("stamps: %d of them, want 1 to %d", n, MaxLateStamps)
	}
	return nil
}

// LateStamped names one time stamp that a record received after it was sealed.
type LateStamped struct {
	Authority string                 `json:"authority"` // the operator's name for it
	Kind      evidence.TimestampKind `json:"kind"`
	Record    evidence.Digest        `json:"record"`
	Token     evidence.Digest        `json:"token"` // SHA-256 of the token's bytes
}

// CheckpointStampBody is the response of a checkpoint_stamp.
type CheckpointStampBody struct {
	Authority  string     `json:"authority"`
	Checkpoint string     `json:"checkpoint"`       // C2SP signed note
	Renews     [][][]byte `json:"renews,omitempty"` // the generations of tokens that Token renews; none: it is the checkpoint's own
	Token      []byte     `json:"token"`            // RFC 3161, DER, over what evidence.Anchor.Imprint says
}

// Anchor returns the anchor that the act makes, without what shows its consistency with another checkpoint.
func (b *CheckpointStampBody) Anchor() evidence.Anchor {
	return evidence.Anchor{Checkpoint: b.Checkpoint, Timestamps: append(slices.Clip(b.Renews), [][]byte{b.Token})}
}

func (b *CheckpointStampBody) checkSize() error {
	return evidence.CheckAnchors(b.Checkpoint, []evidence.Anchor{b.Anchor()})
}

// KeyChange is what happened to a key.
type KeyChange string

const (
	KeyRegistered KeyChange = "registered" // the operator registered it
	KeyRotated    KeyChange = "rotated"    // it replaces another key
	KeyRetired    KeyChange = "retired"    // it no longer signs
	KeyRevoked    KeyChange = "revoked"    // another party may hold it
)

// Custody of a key: who can sign with it. A KeyEventBody and a trust file use the same words.
const (
	CustodyOwner    = "owner"    // the actor alone
	CustodyOperator = "operator" // the operator, in the actor's name
)

// KeyEventBody is the response of a key_event.
type KeyEventBody struct {
	Algorithm    evidence.Algorithm `json:"alg"`
	By           string             `json:"by"`
	Card         evidence.Digest    `json:"card,omitzero"`          // of the actor's A2A agent card without its signatures; zero: nothing is said
	Certificates [][]byte           `json:"certificates,omitempty"` // DER: the key's, then those above it; of a new key
	Custody      string             `json:"custody"`
	Event        KeyChange          `json:"event"`
	From         string             `json:"from"` // RFC 3339
	KeyID        evidence.KeyID     `json:"key_id"`
	Name         string             `json:"name"`
	Protection   *Protection        `json:"protection,omitzero"`  // how a new key is kept; nil: nothing is said
	PublicKey    []byte             `json:"public_key,omitempty"` // DER SubjectPublicKeyInfo; of a new key
	Reason       string             `json:"reason"`
	Replaces     evidence.KeyID     `json:"replaces,omitzero"` // of a rotation
	Role         evidence.Role      `json:"role"`
}

// ErasureBody is the response of an erasure.
type ErasureBody struct {
	By       string          `json:"by"`
	Pointers []string        `json:"pointers"`
	Reason   string          `json:"reason"`
	Record   evidence.Digest `json:"record"`
}

// A Body is the response of an act of the operator.
type Body interface {
	LateStampBody | CheckpointStampBody | KeyEventBody | ErasureBody | AccessEventBody | RefusalBody | TrialEventBody | ExpiryBody
}

// Encode writes a body as the response of an act, in canonical form. It returns an error if the body holds text that is not UTF-8.
func Encode[B Body](body B) (jsontext.Value, error) {
	doc, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", body, err)
	}
	return evidence.Canonical(doc)
}

// Read reads the response of an act of the operator. It returns an error if a member is unknown, missing or empty, or
// if the response is not in canonical form. Check also applies the body's own rules.
func Read[B Body](p *evidence.Payload) (*B, error) {
	body := new(B)
	if err := json.Unmarshal(p.Response, body, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, evidence.Steady(err))
	}
	if bounded, ok := any(body).(interface{ checkSize() error }); ok {
		if err := bounded.checkSize(); err != nil {
			return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
		}
	}
	again, err := Encode(*body)
	if err != nil {
		return nil, err
	}
	if string(again) != string(p.Response) {
		return nil, fmt.Errorf("response of %s: a member is missing, empty or not in canonical form", p.ActionType)
	}
	return body, nil
}

// readIn reads an act of this type in this chain, by the rules of its body.
func readIn[B Body](p *evidence.Payload, want evidence.ActionType, chain string) (*B, error) {
	if p.ActionType != want || p.ChainID != chain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, want, chain)
	}
	body, err := Read[B](p)
	if err != nil {
		return nil, err
	}
	if err := any(body).(interface{ check() error }).check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

// Check returns an error if a payload is not an act of the operator, or breaks a rule of its action type.
func Check(p *evidence.Payload) (err error) {
	switch p.ActionType {
	case evidence.LateStamp:
		_, err = Read[LateStampBody](p)
	case evidence.CheckpointStamp:
		_, err = Read[CheckpointStampBody](p)
	case evidence.KeyEvent:
		_, err = Read[KeyEventBody](p)
	case evidence.Erasure:
		_, err = ReadErasure(p)
	case evidence.AccessEvent:
		_, err = ReadAccessEvent(p)
	case evidence.Refusal:
		_, err = Read[RefusalBody](p)
	case evidence.TrialEvent:
		_, err = ReadTrialEvent(p)
	case evidence.Expiry:
		_, err = ReadExpiry(p)
	default:
		err = fmt.Errorf("%s is not an act of the operator", p.ActionType)
	}
	return err
}

// ReadErasure reads an act that lists which texts of a record were destroyed. Its error is an *evidence.FieldError if saw is wrong.
func ReadErasure(p *evidence.Payload) (*ErasureBody, error) {
	body, err := readIn[ErasureBody](p, evidence.Erasure, p.ChainID)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(p.Saw, []evidence.Digest{body.Record}) {
		return nil, &evidence.FieldError{Field: "saw", Reason: "an erasure names its record here, and nothing else"}
	}
	return body, nil
}

func (b *ErasureBody) check() error {
	switch {
	case b.Record.IsZero():
		return errors.New("record is missing")
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case len(b.Pointers) == 0:
		return errors.New("pointers is empty")
	}
	for i, pointer := range b.Pointers {
		if err := evidence.CheckPointer(pointer); err != nil {
			return err
		}
		if i > 0 && b.Pointers[i-1] >= pointer {
			return errors.New("pointers: not sorted, or one appears twice")
		}
	}
	return nil
}

package evidence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Chains of the operator's acts.
const (
	KeysChain        = OperatorPrefix + "keys"
	CheckpointsChain = OperatorPrefix + "checkpoints"
)

// MaxLateStamps is how many time stamps one late_stamp may speak of.
const MaxLateStamps = 500

// LateStampBody is the response of a late_stamp.
type LateStampBody struct {
	Stamps []LateStamped `json:"stamps"` // 1 to MaxLateStamps
}

func (b *LateStampBody) checkSize() error {
	if n := len(b.Stamps); n < 1 || n > MaxLateStamps {
		return fmt.Errorf("stamps: there are %d, want 1 to %d", n, MaxLateStamps)
	}
	return nil
}

// LateStamped names one time stamp that a record got after it was sealed.
type LateStamped struct {
	Authority string        `json:"authority"` // as the operator calls it
	Kind      TimestampKind `json:"kind"`
	Record    Digest        `json:"record"`
	Token     Digest        `json:"token"` // SHA-256 of the token's bytes
}

// CheckpointStampBody is the response of a checkpoint_stamp.
type CheckpointStampBody struct {
	Authority  string `json:"authority"`
	Checkpoint string `json:"checkpoint"` // C2SP signed note
	Token      []byte `json:"token"`      // RFC 3161, DER, over SHA-256 of the checkpoint
}

// KeyChange says what became of a key.
type KeyChange string

const (
	KeyRegistered KeyChange = "registered" // somebody's key was taken in
	KeyRotated    KeyChange = "rotated"    // it took the place of another
	KeyRetired    KeyChange = "retired"    // it signs no more
	KeyRevoked    KeyChange = "revoked"    // others may sign with it
)

// Who can sign with a key, as a KeyEventBody and a trust file say it.
const (
	CustodyOwner    = "owner"    // the actor alone
	CustodyOperator = "operator" // whoever runs the installation
)

// KeyEventBody is the response of a key_event.
type KeyEventBody struct {
	Algorithm    Algorithm `json:"alg"`
	By           string    `json:"by"`
	Certificates [][]byte  `json:"certificates,omitempty"` // DER: the key's, then those above it; of a new key
	Custody      string    `json:"custody"`
	Event        KeyChange `json:"event"`
	From         string    `json:"from"` // RFC 3339
	KeyID        KeyID     `json:"key_id"`
	Name         string    `json:"name"`
	PublicKey    []byte    `json:"public_key,omitempty"` // DER SubjectPublicKeyInfo; of a new key
	Reason       string    `json:"reason"`
	Replaces     KeyID     `json:"replaces,omitzero"` // of a rotation
	Role         Role      `json:"role"`
}

// ErasureBody is the response of an erasure.
type ErasureBody struct {
	By       string   `json:"by"`
	Pointers []string `json:"pointers"`
	Reason   string   `json:"reason"`
	Record   Digest   `json:"record"`
}

// OperatorBody is what the operator's acts say.
type OperatorBody interface {
	LateStampBody | CheckpointStampBody | KeyEventBody | ErasureBody | AccessEventBody | RefusalBody | TrialEventBody | RetentionEventBody
}

// EncodeOperatorBody writes a body as the response of an act.
func EncodeOperatorBody[B OperatorBody](body B) (jsontext.Value, error) {
	doc, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", body, err)
	}
	return Canonical(doc)
}

// ReadOperatorBody reads the response of an act of the operator. Members that are unknown or missing are refused.
func ReadOperatorBody[B OperatorBody](p *Payload) (*B, error) {
	body := new(B)
	if err := json.Unmarshal(p.Response, body, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, Steady(err))
	}
	if bounded, ok := any(body).(interface{ checkSize() error }); ok {
		if err := bounded.checkSize(); err != nil {
			return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
		}
	}
	again, err := EncodeOperatorBody(*body)
	if err != nil {
		return nil, err
	}
	if string(again) != string(p.Response) {
		return nil, fmt.Errorf("response of %s: a member is missing, empty or not in its one form", p.ActionType)
	}
	return body, nil
}

// CheckOperatorAct reads the response of an act of the operator by the rules of its action type.
func CheckOperatorAct(p *Payload) (err error) {
	switch p.ActionType {
	case LateStamp:
		_, err = ReadOperatorBody[LateStampBody](p)
	case CheckpointStamp:
		_, err = ReadOperatorBody[CheckpointStampBody](p)
	case KeyEvent:
		_, err = ReadOperatorBody[KeyEventBody](p)
	case Erasure:
		_, err = ReadErasure(p)
	case AccessEvent:
		_, err = ReadAccessEvent(p)
	case Refusal:
		_, err = ReadOperatorBody[RefusalBody](p)
	case TrialEvent:
		_, err = ReadTrialEvent(p)
	case RetentionEvent:
		_, err = ReadRetentionEvent(p)
	default:
		err = fmt.Errorf("%s is no act of the operator", p.ActionType)
	}
	return err
}

// ReadErasure reads an act that says which texts of a record were destroyed.
func ReadErasure(p *Payload) (*ErasureBody, error) {
	if p.ActionType != Erasure {
		return nil, fmt.Errorf("%s is no erasure", p.ActionType)
	}
	body, err := ReadOperatorBody[ErasureBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	if !slices.Equal(p.Saw, []Digest{body.Record}) {
		return nil, &FieldError{Field: "saw", Reason: "of an erasure it names the record and nothing else"}
	}
	return body, nil
}

func (b *ErasureBody) check() error {
	switch {
	case b.Record.IsZero():
		return errors.New("record: it names none")
	case b.By == "" || b.Reason == "":
		return errors.New("by and reason are not empty")
	case len(b.Pointers) == 0:
		return errors.New("pointers: it names none")
	}
	for i, pointer := range b.Pointers {
		if _, _, err := splitPointer(pointer); err != nil {
			return err
		}
		if i > 0 && b.Pointers[i-1] >= pointer {
			return errors.New("pointers: not sorted, or one is there twice")
		}
	}
	return nil
}

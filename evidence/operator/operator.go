//go:build !js

// Package operator reads and writes what the operator of a log states under its own key, and what witnesses sign
// beside it.
//
// Acts of the operator are records like all others. The response of each is a body of this package: [KeyEventBody],
// [LateStampBody], [CheckpointStampBody], [ErasureBody], [AccessEventBody], [TrialEventBody],
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
	"strings"
	"unicode/utf8"

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

func (b *LateStampBody) check() error {
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

func (b *CheckpointStampBody) check() error {
	return evidence.CheckAnchors(b.Checkpoint, []evidence.Anchor{b.Anchor()})
}

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
	LateStampBody | CheckpointStampBody | KeyEventBody | ErasureBody | AccessEventBody | TrialEventBody | ExpiryBody
}

// Encode writes a body as the response of an act, in canonical form. It returns an error if the body holds text that is not UTF-8.
func Encode[B Body](body B) (jsontext.Value, error) {
	doc, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", body, err)
	}
	return evidence.Canonical(doc)
}

// Read reads the response of an act of the operator. It returns an error if a member is unknown, missing or empty, or if the response is not in
// canonical form or breaks a rule of the body. Check also applies the rules on chain_id and saw.
func Read[B Body](p *evidence.Payload) (*B, error) {
	body := new(B)
	if err := json.Unmarshal(p.Response, body, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, evidence.Steady(err))
	}
	again, err := Encode(*body)
	if err != nil {
		return nil, err
	}
	if string(again) != string(p.Response) {
		return nil, fmt.Errorf("response of %s: a member is missing, empty or not in canonical form", p.ActionType)
	}
	if ruled, ok := any(body).(interface{ check() error }); ok {
		if err := ruled.check(); err != nil {
			return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
		}
	}
	return body, nil
}

// readIn reads an act of this type in this chain.
func readIn[B Body](p *evidence.Payload, want evidence.ActionType, chain string) (*B, error) {
	if p.ActionType != want || p.ChainID != chain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, want, chain)
	}
	return Read[B](p)
}

// acts has how an act of each type is read by its rules.
var acts = map[evidence.ActionType]func(*evidence.Payload) error{
	evidence.LateStamp:       checked(Read[LateStampBody]),
	evidence.CheckpointStamp: checked(Read[CheckpointStampBody]),
	evidence.KeyEvent:        checked(Read[KeyEventBody]),
	evidence.Erasure:         checked(ReadErasure),
	evidence.AccessEvent:     checked(ReadAccessEvent),
	evidence.TrialEvent:      checked(ReadTrialEvent),
	evidence.Expiry:          checked(ReadExpiry),
}

func checked[B Body](read func(*evidence.Payload) (*B, error)) func(*evidence.Payload) error {
	return func(p *evidence.Payload) error {
		_, err := read(p)
		return err
	}
}

// Check returns an error if a payload is not an act of the operator, or breaks a rule of its action type.
func Check(p *evidence.Payload) error {
	if check := acts[p.ActionType]; check != nil {
		return check(p)
	}
	return fmt.Errorf("%s is not an act of the operator", p.ActionType)
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

// Protection says how a key is kept: on which token, and what the token says about it. It is only the operator's
// word, taken from a program that keeps keys.
type Protection struct {
	Kind             string `json:"kind"`  // "pkcs11", or another program's own word
	Local            bool   `json:"local"` // the token made the key
	Manufacturer     string `json:"manufacturer,omitempty"`
	Model            string `json:"model,omitempty"`
	NeverExtractable bool   `json:"never_extractable"` // the key could never leave the token in clear
	Serial           string `json:"serial,omitempty"`
}

// Check refuses texts that are too long, or that are unsafe to show on a terminal.
func (p Protection) Check() error {
	const most = 64 // bytes of a text
	for _, text := range []string{p.Kind, p.Manufacturer, p.Model, p.Serial} {
		control := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 })
		if len(text) > most || control || !utf8.ValidString(text) {
			return errors.New("protection: a text is longer than 64 bytes, or has control characters")
		}
	}
	if p.Kind == "" {
		return errors.New("protection: kind is missing")
	}
	return nil
}

// ExpiryChain is the chain of the operator's acts that removed the content of old records.
const ExpiryChain = evidence.OperatorPrefix + "expiry"

// MinRetention is the fewest days for which a record is kept: six months, as Articles 19 and 26(6) of the EU AI Act require of logs.
const MinRetention = 183

// ExpiryBody is the response of an expiry: the content of so many records was removed. The log keeps its hashes, and
// each of these records names the act.
type ExpiryBody struct {
	Before string          `json:"before"` // RFC 3339: they were sealed before this
	By     string          `json:"by"`
	Count  int64           `json:"count"`           // how many
	Except []string        `json:"except,omitzero"` // chains that were to stay, sorted
	From   int64           `json:"from"`            // their places: of the first, and after the last
	Places evidence.Digest `json:"places"`          // SHA-256 of all their places, each in 8 bytes, big-endian, in log order
	Reason string          `json:"reason"`
	To     int64           `json:"to"`
}

// ReadExpiry reads an expiry. It returns an error if the act stands in another chain or contradicts itself.
func ReadExpiry(p *evidence.Payload) (*ExpiryBody, error) {
	return readIn[ExpiryBody](p, evidence.Expiry, ExpiryChain)
}

func (b *ExpiryBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by or reason is empty")
	}
	if _, err := evidence.ParseTime(b.Before); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if b.From < 0 || b.To > MaxEntries || b.Count < 1 || b.Count > b.To-b.From || b.Places.IsZero() {
		return fmt.Errorf("%d records of %d to %d contradict each other, or the digest of their places is zero", b.Count, b.From, b.To)
	}
	for i, chain := range b.Except {
		if err := evidence.CheckName(chain); err != nil {
			return fmt.Errorf("except: %w", err)
		}
		if i > 0 && chain <= b.Except[i-1] {
			return errors.New("except: the chains are not sorted, or one is there twice")
		}
	}
	if b.Except != nil && len(b.Except) == 0 {
		return errors.New("except is empty")
	}
	return nil
}

// TrialsChain is the chain of the operator's acts that cancel and resume trials, and say which reviewer has taken a case.
const TrialsChain = evidence.OperatorPrefix + "trials"

// TrialChange is what happened to a trial, before the jury ended it or while it waits for a person.
type TrialChange string

const (
	TrialCancelled TrialChange = "cancelled" // it does not go on
	TrialResumed   TrialChange = "resumed"   // it goes on after all
	TrialTaken     TrialChange = "taken"     // a reviewer means to decide on it
	TrialLeft      TrialChange = "left"      // the reviewer does not mean to any more
)

// TrialEventBody is the response of a trial_event.
type TrialEventBody struct {
	By     string      `json:"by"`
	Event  TrialChange `json:"event"`
	Reason string      `json:"reason,omitzero"` // "": none was given, to take or leave a case
	Trial  string      `json:"trial"`           // the chain_id of its acts

	// Of taken and left.
	Reviewer string `json:"reviewer,omitzero"` // who has taken the case, or left it
	Record   string `json:"record,omitzero"`   // record id of what waits: the verdict, or the last decision on it. With the next decision, this ends
}

// ReadTrialEvent reads a trial_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadTrialEvent(p *evidence.Payload) (*TrialEventBody, error) {
	return readIn[TrialEventBody](p, evidence.TrialEvent, TrialsChain)
}

func (b *TrialEventBody) check() error {
	if b.By == "" {
		return errors.New("by is empty")
	}
	if err := b.checkEvent(); err != nil {
		return err
	}
	if !strings.HasPrefix(b.Trial, evidence.TrialPrefix) {
		return fmt.Errorf("trial: %q is not the chain_id of a trial", evidence.Abbreviate(b.Trial))
	}
	return evidence.CheckName(b.Trial)
}

func (b *TrialEventBody) checkEvent() error {
	switch b.Event {
	case TrialCancelled, TrialResumed:
		if b.Reason == "" {
			return errors.New("reason is empty")
		}
		if b.Reviewer != "" || b.Record != "" {
			return fmt.Errorf("%s has no reviewer and no record", b.Event)
		}
		return nil
	case TrialTaken, TrialLeft:
		if err := evidence.CheckName(b.Reviewer); err != nil {
			return fmt.Errorf("reviewer: %w", err)
		}
		if err := evidence.CheckRecordID(b.Record); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		return nil
	}
	return fmt.Errorf("unknown event %q", b.Event)
}

// AccessChain has the operator's acts on access.
const AccessChain = evidence.OperatorPrefix + "access"

// AccessChange is what happened to the access of a person, an agent or the public.
type AccessChange string

const (
	AccessGranted   AccessChange = "granted"   // the holder of the token may do what its roles allow
	AccessRevoked   AccessChange = "revoked"   // the token no longer opens anything
	AccessPublished AccessChange = "published" // everybody may read the chain, the record, or what the log shows of the agent
	AccessWithdrawn AccessChange = "withdrawn" // only roles open it again
	AccessAdmitted  AccessChange = "admitted"  // an agent may add to a chain that another began
)

// AccessEventBody is the response of an access_event. It has a token's digest, not the token: a token is random, so the digest
// does not reveal it.
type AccessEventBody struct {
	Agent    string          `json:"agent,omitzero"` // of published and withdrawn, instead of a chain: an agent, whose reputation is shown
	By       string          `json:"by"`
	Chain    string          `json:"chain,omitzero"` // of published, withdrawn and admitted
	Event    AccessChange    `json:"event"`
	Name     string          `json:"name,omitzero"`      // of granted: who acts with it; of admitted: the agent
	NotAfter string          `json:"not_after,omitzero"` // of granted: RFC 3339
	Reason   string          `json:"reason"`
	Record   string          `json:"record,omitzero"`  // of published and withdrawn, instead of a chain: the id of a record without one
	Roles    []string        `json:"roles,omitempty"`  // of granted: at least one, sorted
	Session  bool            `json:"session,omitzero"` // of granted: a person signed in with a browser
	Token    evidence.Digest `json:"token,omitzero"`   // of granted and revoked
	Under    evidence.Digest `json:"under,omitzero"`   // of granted: the token that this one ends with
}

// ReadAccessEvent reads an access_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadAccessEvent(p *evidence.Payload) (*AccessEventBody, error) {
	return readIn[AccessEventBody](p, evidence.AccessEvent, AccessChain)
}

func (b *AccessEventBody) check() error {
	granted, admitted := b.Event == AccessGranted, b.Event == AccessAdmitted
	ofToken := granted || b.Event == AccessRevoked
	named := 0
	for _, name := range []string{b.Chain, b.Record, b.Agent} {
		if name != "" {
			named++
		}
	}
	switch {
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case !slices.Contains([]AccessChange{AccessGranted, AccessRevoked, AccessPublished, AccessWithdrawn, AccessAdmitted}, b.Event):
		return fmt.Errorf("unknown event %q", b.Event)
	case !granted && ((b.Name != "") != admitted || b.NotAfter != "" || b.Roles != nil || b.Session || !b.Under.IsZero()):
		return fmt.Errorf("%s has a name if it is %s, and no not_after, roles, session or under", b.Event, AccessAdmitted)
	case ofToken && (b.Token.IsZero() || named > 0):
		return fmt.Errorf("%s is of a token and nothing else", b.Event)
	case !ofToken && (!b.Token.IsZero() || named != 1 || admitted && b.Chain == ""):
		return fmt.Errorf("%s is of a chain, or a record or an agent where it may be one, and nothing else", b.Event)
	case granted:
		return b.checkGrant()
	case ofToken:
		return nil
	case b.Record != "":
		return evidence.CheckRecordID(b.Record)
	}
	for _, one := range []struct{ member, name string }{{"name", b.Name}, {"agent", b.Agent}, {"chain", b.Chain}} {
		if err := evidence.CheckName(one.name); one.name != "" && err != nil {
			return fmt.Errorf("%s: %w", one.member, err)
		}
	}
	return nil
}

func (b *AccessEventBody) checkGrant() error {
	if err := evidence.CheckName(b.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if _, err := evidence.ParseTime(b.NotAfter); err != nil {
		return fmt.Errorf("not_after: %w", err)
	}
	if len(b.Roles) == 0 || !slices.IsSorted(b.Roles) || len(slices.Compact(slices.Clone(b.Roles))) != len(b.Roles) {
		return errors.New("roles: want at least one, sorted, none twice")
	}
	for _, role := range b.Roles {
		if err := evidence.CheckName(role); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	}
	return nil
}

// Package trust holds what a reader trusts, and answers questions about it.
//
// A [Trust] names keys and their actors, certification authorities, time-stamping authorities, logs and witnesses.
// [Parse] reads it from a trust file. A [Checker] answers, at a moment and with the reader's revocation lists: which
// authority vouches for the key of a certificate, what time a token proves, and whether a certificate was revoked. It
// returns answers and errors; package verify turns them into findings.
//
// The package needs no clock, file or network.
//
// # A list counts after the record
//
// A list that is out of date hides what was revoked since. One of before the record would hide a theft that was reported later. So it still counts, as of
// its own time, only if it was made after a time that neither the operator nor a thief can have chosen, and after a grace in which a theft becomes known.
package trust

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Format is the version of the trust file format that this package reads and writes.
const Format = "jurat/trust/v1"

// Trust says what a reader trusts: which key is whose, whose clocks count, which logs. It comes from the reader,
// never from the file under verification. The zero Trust trusts nothing. Prepared checks a Trust that was made in Go
// as Parse checks a file; an invalid one proves nothing.
type Trust struct {
	Format      string      `json:"format"`
	Keys        []Key       `json:"keys"`
	Authorities []Authority `json:"authorities"` // time-stamping authorities
	CAs         []CA        `json:"cas,omitempty"`
	Logs        []string    `json:"logs"` // verifier keys of logs, as package note writes them

	// Witnesses cosign checkpoints of logs that they have seen grow: verifier keys of C2SP tlog-cosignature. Quorum
	// is how many of them must have cosigned a checkpoint before it proves an order. Both are set, or neither.
	Witnesses []string `json:"witnesses,omitempty"`
	Quorum    int      `json:"quorum,omitzero"`

	Lists *Lists `json:"lists,omitempty"` // the trusted lists that authorities were taken from; nil: none

	witnesses []*operator.Witness
	logs      []logKey
}

// A logKey is the public key of a log.
type logKey struct {
	origin string
	id     evidence.KeyID
	public ed25519.PublicKey
}

// A Key says that a public key is an actor's.
type Key struct {
	Name      string             `json:"name"` // as in agent_id or reviewer_id
	Role      evidence.Role      `json:"role"`
	Algorithm evidence.Algorithm `json:"alg"`
	KeyID     evidence.KeyID     `json:"key_id"`
	PublicKey []byte             `json:"public_key"` // DER SubjectPublicKeyInfo
	Custody   Custody            `json:"custody"`
	NotBefore time.Time          `json:"not_before,omitzero"` // the key signed nothing earlier; zero: no limit
	NotAfter  time.Time          `json:"not_after,omitzero"`  // the key signs nothing later; zero: no limit
	Revoked   time.Time          `json:"revoked,omitzero"`    // from then on others may have signed with it; zero: it was not revoked
	With      []evidence.KeyID   `json:"with,omitempty"`      // the actor's other keys, which must sign everything that this key signs
	WithFrom  time.Time          `json:"with_from,omitzero"`  // from this time on; zero: always

	public crypto.PublicKey
}

// Custody says who can sign with a key.
type Custody string

const (
	ByOwner    Custody = "owner"    // the actor alone
	ByOperator Custody = "operator" // the operator signs on the actor's behalf
)

// An Authority is a time-stamping authority, known by the certificate that its certificate path ends in.
type Authority struct {
	Name        string     `json:"name"`
	Certificate []byte     `json:"certificate"` // DER of the root
	Clock       Clock      `json:"clock"`
	Policies    []string   `json:"policies,omitempty"`  // accepted policy OIDs in dotted form; empty: any
	Revocation  Revocation `json:"revocation,omitzero"` // whether to check its certificates; left out: no check

	// Services are the certificate's services in the trusted lists that Trust.Lists names; empty: none.
	Services []Service `json:"services,omitempty"`

	// NotAfter ends the trust in the authority's signature, for instance because its key was stolen or its algorithms
	// were broken. After it, a token counts only if something else proves that it existed before. Zero: no end.
	NotAfter time.Time `json:"not_after,omitzero"`

	root     *x509.Certificate
	policies []x509.OID
}

// Clock says whose clock an authority reads.
type Clock string

const (
	Independent   Clock = "independent"
	OperatorClock Clock = "operator" // time is proved only as far as the operator's word
)

// Parse reads a trust file. It returns an error for unknown members, for a key in two roles, for a key that does not match its id, and for
// demands that no record could meet.
func Parse(doc []byte) (*Trust, error) {
	form, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading trust file: %w", err)
	}
	t := new(Trust)
	if err := json.Unmarshal(form, t, json.RejectUnknownMembers(true), json.WithUnmarshalers(strictly)); err != nil {
		var said struct {
			Format any `json:"format"` // t has it only if it stands before the mistake
		}
		if json.Unmarshal(form, &said) == nil && said.Format != Format && (evidence.BeginsAsRecord(doc) || evidence.BeginsAsBundle(doc)) {
			return nil, errors.New("reading trust file: this is a record or a case file, and not a trust file")
		}
		return nil, fmt.Errorf("reading trust file: %w", evidence.Steady(err))
	}
	return t, t.prepare()
}

// strictly reads what a trust file, which may have any spelling, holds as text. Where a file has one spelling, writing it again compares all.
var strictly = json.JoinUnmarshalers(json.UnmarshalFromFunc(readTime), json.UnmarshalFromFunc(readBytes))

// readBytes refuses base64 whose unused bits are not zero: the decoder does not look at them, others do.
func readBytes(in *jsontext.Decoder, b *[]byte) error {
	token, err := in.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return err
	}
	if token.Kind() != '"' {
		return errors.New("want base64")
	}
	text := token.String()
	if strings.ContainsAny(text, "\r\n") {
		return errors.New("base64 has no line breaks")
	}
	*b, err = base64.StdEncoding.Strict().DecodeString(text)
	return err
}

// readTime refuses the zero time. Zero stands for a limit that was left out, so a key revoked from the beginning would pass as a good one.
func readTime(in *jsontext.Decoder, t *time.Time) error {
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '"':
	case 'n': // left out
		return nil
	default:
		return errors.New("want an RFC 3339 time")
	}
	if err := t.UnmarshalText([]byte(token.String())); err != nil {
		return err
	}
	if t.IsZero() {
		return errors.New("the first moment of the year 1 cannot be a limit")
	}
	return nil
}

// prepare parses what the file holds as bytes and text.
func (t *Trust) prepare() error {
	if t.Format != Format {
		return fmt.Errorf("reading trust file: format is %q, want %q", t.Format, Format)
	}
	err := cmp.Or(
		prepareEach("keys", t.Keys, "key sha256:IDENTITY is there twice; a key must belong to one actor in one role", (*Key).prepare),
		prepareEach("keys", t.Keys, "", t.prepareWith),
		prepareEach("authorities", t.Authorities, "the root is there twice", (*Authority).prepare),
		prepareEach("cas", t.CAs, "the certificate is there twice", (*CA).prepare),
		prepareEach("logs", t.Logs, "the key is there twice", t.prepareLog),
		t.prepareLists(),
		prepareEach("witnesses", t.Witnesses, "the key is there twice, and would count as two witnesses", t.prepareWitness))
	if err == nil && (len(t.Witnesses) > 0 != (t.Quorum > 0) || t.Quorum < 0 || t.Quorum > len(t.Witnesses)) {
		err = fmt.Errorf("quorum is %d of %d witnesses: want at least 1, and at most the number of witnesses", t.Quorum, len(t.Witnesses))
	}
	if err != nil {
		return fmt.Errorf("reading trust file: %w", err)
	}
	return nil
}

// prepareEach prepares the elements of a list, of which no two may be the same thing: twice says so, with IDENTITY for its digits. prepare returns what
// tells an element from others; nil: it is not compared.
func prepareEach[T any](name string, list []T, twice string, prepare func(*T) (identity []byte, err error)) error {
	seen := map[string]bool{}
	for i := range list {
		identity, err := prepare(&list[i])
		if err == nil && identity != nil && seen[string(identity)] {
			err = errors.New(strings.Replace(twice, "IDENTITY", fmt.Sprintf("%x", identity), 1))
		}
		if err != nil {
			return fmt.Errorf("%s/%d: %w", name, i, err)
		}
		seen[string(identity)] = true
	}
	return nil
}

func (t *Trust) prepareLog(text *string) ([]byte, error) {
	verifier, err := note.NewVerifier(*text)
	if err != nil {
		return nil, err
	}
	public, err := operator.LogPublicKey(*text)
	if err != nil {
		return nil, err
	}
	id, err := evidence.KeyIDOf(public)
	t.logs = append(t.logs, logKey{origin: verifier.Name(), id: id, public: public})
	return []byte(*text), err
}

// prepareWitness refuses keys of logs.
func (t *Trust) prepareWitness(text *string) ([]byte, error) {
	w, err := operator.ParseWitness(*text)
	if err != nil {
		return nil, err
	}
	// So the verifier key of a log with this key ends: with the type byte of logs.
	asLog := "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, w.PublicKey()...))
	if slices.ContainsFunc(t.Logs, func(log string) bool { return strings.HasSuffix(log, asLog) }) {
		return nil, errors.New("the key is a log's, and a log cannot be its own witness")
	}
	t.witnesses = append(t.witnesses, w)
	return w.PublicKey(), nil
}

// Public returns the public key. It is nil before Parse or Prepared has parsed it.
func (k *Key) Public() crypto.PublicKey { return k.public }

func (k *Key) prepare() (identity []byte, err error) {
	if k.Name == "" {
		return nil, errors.New("name is empty")
	}
	if !slices.Contains(evidence.Roles(), k.Role) {
		return nil, fmt.Errorf("unknown role %q: expected one of %v", k.Role, evidence.Roles())
	}
	if k.Custody != ByOwner && k.Custody != ByOperator {
		return nil, fmt.Errorf("custody %q: want %q or %q", k.Custody, ByOwner, ByOperator)
	}
	if k.public, err = evidence.ParsePublicKey(k.PublicKey); err != nil {
		return nil, fmt.Errorf("public_key: %w", err)
	}
	if algorithm, _ := evidence.AlgorithmOf(k.public); algorithm != k.Algorithm {
		return nil, fmt.Errorf("alg is %q, but the key signs %q", k.Algorithm, algorithm)
	}
	if id := evidence.DigestOf(k.PublicKey); id != k.KeyID {
		return nil, fmt.Errorf("key_id is %s, but the key's is %s", k.KeyID, id)
	}
	if !k.NotAfter.IsZero() && k.NotAfter.Before(k.NotBefore) {
		return nil, errors.New("not_after is before not_before")
	}
	return k.KeyID[:], nil
}

// prepareWith refuses demands for further signatures that no record could meet.
func (t *Trust) prepareWith(k *Key) ([]byte, error) {
	if k.With != nil && len(k.With) == 0 {
		return nil, errors.New("with is empty; leave it out if the key signs alone")
	}
	if len(k.With) == 0 && !k.WithFrom.IsZero() {
		return nil, errors.New("with_from is set, but with is missing")
	}
	for i, id := range k.With {
		other := t.Key(id)
		switch {
		case other == nil:
			return nil, fmt.Errorf("with: the trust file has no key %s", id)
		case id == k.KeyID || slices.Contains(k.With[:i], id):
			return nil, fmt.Errorf("with: the key %s is this key itself, or is there twice", id)
		case other.Name != k.Name || other.Role != k.Role:
			return nil, fmt.Errorf("with: the key %s is that of %s %q", id, other.Role, other.Name)
		}
	}
	return nil, nil
}

func (a *Authority) prepare() (identity []byte, err error) {
	if a.Name == "" {
		return nil, errors.New("name is empty")
	}
	if a.Clock != Independent && a.Clock != OperatorClock {
		return nil, fmt.Errorf("clock %q: want %q or %q", a.Clock, Independent, OperatorClock)
	}
	if err := a.Revocation.check(ByCRL, NotAsked); err != nil {
		return nil, err
	}
	if a.root, err = x509.ParseCertificate(a.Certificate); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	for _, text := range a.Policies {
		oid, err := x509.ParseOID(text)
		if err != nil || oid.String() != text {
			return nil, fmt.Errorf("policies: %q is not an object identifier in dotted form", text)
		}
		a.policies = append(a.policies, oid)
	}
	return a.root.Raw, nil
}

// Prepared returns t itself if Parse made it, and otherwise a parsed copy. Its errors are those of Parse.
func (t *Trust) Prepared() (*Trust, error) {
	if t.isPrepared() {
		return t, nil
	}
	made := &Trust{Format: cmp.Or(t.Format, Format), Keys: slices.Clone(t.Keys), Authorities: slices.Clone(t.Authorities), CAs: slices.Clone(t.CAs),
		Logs: t.Logs, Witnesses: t.Witnesses, Quorum: t.Quorum, Lists: t.Lists}
	for i := range made.Authorities {
		made.Authorities[i].policies = nil
	}
	return made, made.prepare()
}

func (t *Trust) isPrepared() bool {
	return len(t.witnesses) == len(t.Witnesses) && len(t.logs) == len(t.Logs) &&
		!slices.ContainsFunc(t.Keys, func(k Key) bool { return k.public == nil }) &&
		!slices.ContainsFunc(t.Authorities, func(a Authority) bool { return a.root == nil }) &&
		!slices.ContainsFunc(t.CAs, func(ca CA) bool { return ca.certificate == nil })
}

// Marshal writes the trust file, indented for people to read. It refuses text that is not valid UTF-8, and a file of
// more than evidence.MaxDocument bytes.
func (t *Trust) Marshal() ([]byte, error) {
	form, err := t.canonical()
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(form)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("writing trust file: %w", err)
	}
	return append(value, '\n'), nil
}

func (t *Trust) canonical() ([]byte, error) {
	doc, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("writing trust file: %w", err)
	}
	return evidence.Canonical(doc)
}

// Fingerprint returns the digest of the trust file's canonical form, to compare over another channel. Its errors are
// those of Marshal.
func (t *Trust) Fingerprint() (evidence.Digest, error) {
	form, err := t.canonical()
	return evidence.DigestOf(form), err
}

// Key returns the key with an id, or nil.
func (t *Trust) Key(id evidence.KeyID) *Key {
	i := slices.IndexFunc(t.Keys, func(k Key) bool { return k.KeyID == id })
	if i < 0 {
		return nil
	}
	return &t.Keys[i]
}

// Knows reports whether the trust file has any key for an actor.
func (t *Trust) Knows(name string, role evidence.Role) bool {
	return slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Name == name && k.Role == role })
}

func (t *Trust) logVerifiers() note.Verifiers {
	var list []note.Verifier
	for _, key := range t.Logs {
		if v, err := note.NewVerifier(key); err == nil { // prepare refused every key that does not parse
			list = append(list, v)
		}
	}
	return note.VerifierList(list...)
}

// LogKey returns the name and public key of the log whose key has an id; nil if the trust file names no such log.
func (t *Trust) LogKey(id []byte) (origin string, public crypto.PublicKey) {
	for _, key := range t.logs {
		if string(key.id[:]) == string(id) {
			return key.origin, key.public
		}
	}
	return "", nil
}

// Join returns a trust file that trusts what each of several trusts: for files of several owners. What two of them say of the same key, authority or
// CA must be the same, as must what they demand of witnesses and take from trusted lists: neither may loosen what the other demands.
func Join(files ...*Trust) (*Trust, error) {
	joined := &Trust{Format: Format, Keys: []Key{}, Authorities: []Authority{}, Logs: []string{}}
	for i, t := range files {
		if err := joined.take(t); err != nil {
			return nil, fmt.Errorf("trust file %d: %w", i+1, err)
		}
	}
	for _, t := range files {
		if joined.Quorum != t.Quorum || !slices.Equal(slices.Sorted(slices.Values(joined.Witnesses)), slices.Sorted(slices.Values(t.Witnesses))) {
			return nil, errors.New("the files demand different witnesses: a log that one of them has witnessed would pass without")
		}
	}
	return joined.Prepared()
}

// take adds what another trust file has.
func (t *Trust) take(other *Trust) error {
	if other.Lists != nil && t.Lists != nil && !sameForm(other.Lists, t.Lists) {
		return errors.New("it has other trusted lists than a file before it: join them first, and take the lists into the result with 'jurat trust eu'")
	}
	t.Lists = cmp.Or(t.Lists, other.Lists)
	t.Quorum = max(t.Quorum, other.Quorum)
	t.Logs, t.Witnesses = union(t.Logs, other.Logs), union(t.Witnesses, other.Witnesses)
	return cmp.Or(merge("keys", &t.Keys, other.Keys, func(k *Key) string { return string(k.KeyID[:]) }),
		merge("authorities", &t.Authorities, other.Authorities, func(a *Authority) string { return string(a.Certificate) }),
		merge("cas", &t.CAs, other.CAs, func(c *CA) string { return string(c.Certificate) }))
}

// merge adds elements that are not there yet. Two that are the same thing must say the same of it.
func merge[T any](name string, list *[]T, more []T, identity func(*T) string) error {
	for i := range more {
		at := slices.IndexFunc(*list, func(known T) bool { return identity(&known) == identity(&more[i]) })
		switch {
		case at < 0:
			*list = append(*list, more[i])
		case !sameForm(&(*list)[at], &more[i]):
			return fmt.Errorf("%s: element %d is there in another file, too, and says something else: leave one of them out", name, i)
		}
	}
	return nil
}

// sameForm reports whether two values are written alike.
func sameForm(a, b any) bool {
	one, err := json.Marshal(a, json.Deterministic(true))
	other, err2 := json.Marshal(b, json.Deterministic(true))
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

func union(list, more []string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
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

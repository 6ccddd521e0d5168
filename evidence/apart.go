package evidence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/property"
)

// Fields sealed apart.
//
// A commitment can replace a member in the payload. Then the member's text can be withheld from one reader, or erased
// for ever, while the signature over the payload and all proofs stay valid. The commitment is
//
//	"hmac-sha256:" hex( HMAC-SHA256( salt, pointer ‖ 0x00 ‖ canonical value ) )
//
// with 32 random bytes of salt. Without the salt, a short text could be found by trying all guesses. sealed_apart
// lists, as sorted JSON pointers, which members are commitments, so that no other data can pass for one.

const (
	commitmentPrefix = "hmac-sha256:"
	saltSize         = 32
)

// ErrDisclosure is in the chain of every error about a disclosed value that does not match its commitment.
var ErrDisclosure = errors.New("the disclosed value is not the one that was sealed")

// A Disclosure opens one member that was sealed apart.
type Disclosure struct {
	Pointer string         `json:"pointer"`
	Salt    []byte         `json:"salt"`
	Value   jsontext.Value `json:"value"`
}

// commitment computes the text that replaces the member in the payload. The value must be in canonical form.
func (d *Disclosure) commitment() string {
	mac := hmac.New(sha256.New, d.Salt)
	io.WriteString(mac, d.Pointer) // a hash never fails to write
	mac.Write([]byte{0})
	mac.Write(d.Value)
	return commitmentPrefix + hex.EncodeToString(mac.Sum(nil))
}

// CheckDisclosures compares what a record discloses with the commitments in its payload. A wrong disclosure gives an
// error with ErrDisclosure in its chain, or with ErrProvable if only the second commitment is of another value.
func (r *Record) CheckDisclosures() error {
	if len(r.Disclosures) == 0 {
		return nil
	}
	if err := r.checkDisclosureForm(); err != nil {
		return err
	}
	m, err := membersOf(r.canonical)
	if err != nil {
		return err
	}
	get := m.getter()
	for _, d := range r.Disclosures {
		committed, err := get(d.Pointer)
		if err != nil {
			return err
		}
		if !hmac.Equal(quote(d.commitment()), committed) {
			return fmt.Errorf("%w: %s", ErrDisclosure, d.Pointer)
		}
		if err := r.Payload.checkSecond(&d); err != nil {
			return err
		}
	}
	return nil
}

// CheckDisclosure is CheckDisclosures for one value.
func (r *Record) CheckDisclosure(d Disclosure) error {
	alone := *r
	alone.Disclosures = []Disclosure{d}
	return alone.CheckDisclosures()
}

// checkApart checks that sealed_apart is sorted, lists only members that may be sealed apart, and points at
// commitments.
func checkApart(m members, pointers []string, r rule) error {
	get := m.getter()
	for i, pointer := range pointers {
		if i > 0 && pointers[i-1] >= pointer {
			return &FieldError{Field: "sealed_apart", Reason: "not sorted, or a pointer is there twice"}
		}
		if err := apartAllowed(pointer, r); err != nil {
			return err
		}
		value, err := get(pointer)
		if err != nil {
			return err
		}
		if !isCommitment(value) {
			return &FieldError{Field: pointer, Reason: "listed in sealed_apart, but it is not a commitment"}
		}
	}
	return nil
}

func isCommitment(v jsontext.Value) bool {
	s, err := text(v)
	if err != nil {
		return false
	}
	digits, ok := strings.CutPrefix(s, commitmentPrefix)
	_, err = hex.DecodeString(digits)
	return ok && err == nil && len(digits) == hex.EncodedLen(sha256.Size) && strings.ToLower(digits) == digits
}

// apartAllowed refuses pointers to members that must stay readable: the actor, the time, the model, the links.
func apartAllowed(pointer string, r rule) error {
	name, inner, err := splitPointer(pointer)
	if err != nil {
		return err
	}
	if !slices.Contains(r.apart, name) || (name == "metadata") != (inner != "") {
		return &FieldError{Field: "sealed_apart", Reason: fmt.Sprintf("%q cannot be sealed apart here: want one of [%s]",
			Abbreviate(pointer), strings.Join(apartNames(r), ", "))}
	}
	return nil
}

func apartNames(r rule) []string {
	var names []string
	for _, name := range r.apart {
		if name == "metadata" {
			name = "metadata/NAME"
		}
		names = append(names, "/"+name)
	}
	return names
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901, section 3
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// splitPointer reads "/prompt" or "/metadata/user_id". Deeper members, and members with an empty name, cannot be
// sealed apart. A pointer must have its only canonical spelling; otherwise one member could be listed twice.
func splitPointer(pointer string) (name, inner string, err error) {
	parts := strings.Split(pointer, "/")
	if parts[0] != "" || len(parts) < 2 || len(parts) > 3 || slices.Contains(parts[1:], "") {
		return "", "", badPointer(pointer)
	}
	for i, part := range parts {
		parts[i] = unescape.Replace(part)
		if escape.Replace(parts[i]) != part {
			return "", "", badPointer(pointer)
		}
	}
	if len(parts) == 3 {
		inner = parts[2]
	}
	return parts[1], inner, nil
}

// CheckPointer returns a *FieldError unless the pointer names a member that can be sealed apart.
func CheckPointer(pointer string) error {
	_, _, err := splitPointer(pointer)
	return err
}

func badPointer(pointer string) error {
	return &FieldError{Field: "sealed_apart",
		Reason: fmt.Sprintf("%q is not a pointer like /prompt or /metadata/user_id", Abbreviate(pointer))}
}

func (m members) get(pointer string) (jsontext.Value, error) { return m.getter()(pointer) }

// getter finds members by pointer. It decodes each containing object once, because the maker of a payload controls
// how many pointers there are.
func (m members) getter() func(pointer string) (jsontext.Value, error) {
	objects := map[string]members{}
	return func(pointer string) (jsontext.Value, error) {
		name, inner, err := splitPointer(pointer)
		if err != nil {
			return nil, err
		}
		value, there := m[name]
		if there && inner != "" {
			object, known := objects[name]
			if !known {
				if object, err = membersOf(value); err != nil {
					return nil, err
				}
				objects[name] = object
			}
			value, there = object[inner]
		}
		if !there {
			return nil, &FieldError{Field: pointer, Reason: "there is no such member"}
		}
		return value, nil
	}
}

func (m members) set(pointer string, value jsontext.Value) error {
	name, inner, err := splitPointer(pointer)
	if err != nil {
		return err
	}
	if inner == "" {
		m[name] = value
		return nil
	}
	object, err := membersOf(m[name])
	if err != nil {
		return err
	}
	object[inner] = value
	m[name], err = Canonical(marshal(object)) // the actor wrote these names: sort and escape them
	return err
}

// ErrNotApart says that a member cannot be withheld or erased. It was not sealed apart, so its text is part of what
// was signed, and every proof needs it. It cannot be sealed apart afterwards.
var ErrNotApart = errors.New("not sealed apart: its text is part of what was signed, and every proof needs it")

// Pointer reads the pointer to a member that can be sealed apart, such as /metadata/user_id. A bare name is a member
// of the payload: prompt is /prompt. Its error is that of CheckPointer.
func Pointer(text string) (string, error) {
	if !strings.HasPrefix(text, "/") && text != "" {
		text = "/" + text
	}
	_, _, err := splitPointer(text)
	return text, err
}

// ApartMembers lists the pointers of the members that some action type can seal apart, without those of metadata.
func ApartMembers() []string {
	var pointers []string
	for _, r := range rules {
		for _, name := range r.apart {
			if name != "metadata" {
				pointers = append(pointers, "/"+name)
			}
		}
	}
	slices.Sort(pointers)
	return slices.Compact(pointers)
}

// InMetadata reports whether a pointer names a member of metadata.
func InMetadata(pointer string) bool {
	name, inner, err := splitPointer(pointer)
	return err == nil && name == "metadata" && inner != ""
}

// IsApart reports whether the member at a pointer is sealed apart. If the member is in clear, it returns an error
// with ErrNotApart in its chain.
func (r *Record) IsApart(pointer string) (bool, error) {
	if slices.Contains(r.Payload.SealedApart, pointer) {
		return true, nil
	}
	name, inner, err := splitPointer(pointer)
	if err != nil {
		return false, err
	}
	m, err := membersOf(r.canonical)
	if err != nil {
		return false, err
	}
	value, there := m[name]
	if there && inner != "" && value.Kind() == '{' {
		_, err := m.get(pointer)
		there = err == nil
	}
	switch {
	case !there:
		return false, nil
	case inner == "" && name == "metadata":
		return false, fmt.Errorf("record %s: field %s: %w; single members of it may be sealed apart", r.Payload.RecordID, pointer, ErrNotApart)
	}
	return false, fmt.Errorf("record %s: field %s: %w", r.Payload.RecordID, pointer, ErrNotApart)
}

// A Withheld is one member that the caller asked to withhold.
type Withheld struct {
	RecordID string
	Pointer  string
	Already  bool // it was withheld before
}

// Withhold removes the disclosures of these members from all records that have them. Every proof stays valid. If a
// record has such a member in clear, or no record has it, Withhold changes nothing and returns an error.
func Withhold(records []*Record, pointers []string) ([]Withheld, error) {
	var list []Withheld
	for _, pointer := range slices.Compact(slices.Sorted(slices.Values(pointers))) {
		before := len(list)
		for _, r := range records {
			apart, err := r.IsApart(pointer)
			if err != nil {
				return nil, err
			}
			if apart {
				list = append(list, Withheld{RecordID: r.Payload.RecordID, Pointer: pointer, Already: r.disclosure(pointer) < 0})
			}
		}
		if len(list) == before {
			return nil, &FieldError{Field: pointer, Reason: "there is no such member"}
		}
	}
	for _, r := range records {
		r.Disclosures = slices.DeleteFunc(slices.Clone(r.Disclosures), func(d Disclosure) bool { return slices.Contains(pointers, d.Pointer) })
	}
	return list, nil
}

func (r *Record) disclosure(pointer string) int {
	return slices.IndexFunc(r.Disclosures, func(d Disclosure) bool { return d.Pointer == pointer })
}

// Members returns the members of the payload as they were signed. Members that are sealed apart have their
// commitments. It returns an error only for a Record that this package did not make.
func (r *Record) Members() (map[string]jsontext.Value, error) { return membersOf(r.canonical) }

// Bounds of what is provable, and of proofs.
const (
	MaxProvable      = 64        // members of one payload
	MaxProperties    = 64        // proofs of one record
	MaxStatement     = 64 << 10  // bytes of the statement of one proof
	MaxPropertyTotal = 4 << 20   // bytes of all statements and proofs of one record
	MaxProofs        = 512 << 10 // of these, bytes that verifiers check, which takes about 2 s: docs/format.md has the same number
)

// ErrProvable is in the chain of every error about a disclosed value that matches its first commitment and not its second: proofs of that
// member are about another value.
var ErrProvable = errors.New("the disclosed value is not the one that proofs are about")

// Provable is the second commitment of a member that is sealed apart, from which properties of its value can be proved: see package
// property. One salt opens both.
type Provable struct {
	Commitment string        `json:"commitment"` // see property.ParseCommitment
	Kind       property.Kind `json:"kind"`
	Pointer    string        `json:"pointer"`
}

// A PropertyProof shows what a statement says of members that are sealed apart. No signature covers it: it is made when it is asked for.
type PropertyProof struct {
	Proof     []byte         `json:"proof"`
	Statement jsontext.Value `json:"statement"` // see property.ParseStatement
}

// provableAt returns what the payload says of the provable member at a pointer; nil: it is not provable.
func (p *Payload) provableAt(pointer string) *Provable {
	if i := slices.IndexFunc(p.Provable, func(one Provable) bool { return one.Pointer == pointer }); i >= 0 {
		return &p.Provable[i]
	}
	return nil
}

func (d *Disclosure) provable(kind property.Kind) (property.Commitment, error) {
	return property.Commit(kind, d.Pointer, property.Opening{Value: d.Value, Salt: [saltSize]byte(d.Salt)})
}

// checkSecond compares a disclosure, whose first commitment matches, with its second one, if there is one.
func (p *Payload) checkSecond(d *Disclosure) error {
	said := p.provableAt(d.Pointer)
	if said == nil {
		return nil
	}
	commitment, err := d.provable(said.Kind)
	if err == nil && commitment.String() != said.Commitment {
		err = errors.New("the commitments differ")
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrProvable, d.Pointer, err)
	}
	return nil
}

// readProvable reads the list of second commitments. That each is of a member that is sealed apart is for checkProvable to see.
func readProvable(v jsontext.Value) ([]Provable, error) {
	values, err := elements(v)
	if err != nil {
		return nil, err
	}
	if len(values) > MaxProvable {
		return nil, fmt.Errorf("names %d members: want at most %d", len(values), MaxProvable)
	}
	list := make([]Provable, len(values))
	for i, value := range values {
		if err := json.Unmarshal(value, &list[i], json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("element %d: want {commitment, kind, pointer}: %w", i, Steady(err))
		}
		if err := list[i].Kind.Check(); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		if _, err := property.ParseCommitment(list[i].Commitment); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return list, nil
}

// checkProvable checks that the list is sorted and names only members that are sealed apart.
func (p *Payload) checkProvable() error {
	for i, one := range p.Provable {
		if i > 0 && p.Provable[i-1].Pointer >= one.Pointer {
			return &FieldError{Field: "provable", Reason: "not sorted by pointer, or a pointer is there twice"}
		}
		if _, apart := slices.BinarySearch(p.SealedApart, one.Pointer); !apart {
			return &FieldError{Field: "provable", Reason: fmt.Sprintf("%q is not sealed apart", Abbreviate(one.Pointer))}
		}
	}
	return nil
}

// CheckProperties returns an error unless one record may carry these proofs. Whether they hold is for a verifier to find.
func CheckProperties(list []PropertyProof) error {
	if len(list) > MaxProperties {
		return fmt.Errorf("properties: %d of them: want at most %d", len(list), MaxProperties)
	}
	total, seen := 0, make(map[[sha256.Size]byte]bool, len(list))
	for i, p := range list {
		if p.Statement.Kind() != '{' || len(p.Statement) > MaxStatement {
			return fmt.Errorf("properties: the statement of %d is not an object of at most %d bytes", i, MaxStatement)
		}
		if len(p.Proof) == 0 || len(p.Proof) > property.MaxProof {
			return fmt.Errorf("properties: the proof of %d has %d bytes: want 1 to %d", i, len(p.Proof), property.MaxProof)
		}
		digest := sha256.Sum256(slices.Concat(p.Statement, p.Proof)) // a statement ends where its object does
		if seen[digest] {
			return fmt.Errorf("properties: %d is there twice", i)
		}
		seen[digest] = true
		total += len(p.Statement) + len(p.Proof)
	}
	if total > MaxPropertyTotal {
		return fmt.Errorf("properties: together they have %d bytes: want at most %d", total, MaxPropertyTotal)
	}
	return nil
}

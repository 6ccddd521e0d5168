package evidence

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/property"
)

// Bounds of what is provable, and of proofs.
const (
	MaxProvable      = 64       // members of one payload
	MaxProperties    = 64       // proofs of one record
	MaxStatement     = 64 << 10 // bytes of the statement of one proof
	MaxPropertyTotal = 4 << 20  // bytes of all statements and proofs of one record
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

// SealingProvable returns a copy of the draft that lists members to seal apart and make provable: their kinds, by JSON pointers.
func (d *Draft) SealingProvable(kinds map[string]property.Kind) *Draft {
	wishing := d.SealingApart(slices.Collect(maps.Keys(kinds))...)
	wishing.provable = joined(d.provable, kinds)
	return wishing
}

// Provable returns what was given to SealingProvable.
func (d *Draft) Provable() map[string]property.Kind { return joined(d.provable, nil) }

// provableAt returns what the payload says of the provable member at a pointer; nil: it is not provable.
func (p *Payload) provableAt(pointer string) *Provable {
	if i := slices.IndexFunc(p.Provable, func(one Provable) bool { return one.Pointer == pointer }); i >= 0 {
		return &p.Provable[i]
	}
	return nil
}

// joined returns both; what b says counts.
func joined(a, b map[string]property.Kind) map[string]property.Kind {
	all := make(map[string]property.Kind, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// makeProvable adds the second commitments of members that were just sealed apart. Those that the actor made stay as they are.
func (d *Draft) makeProvable(m members, disclosures []Disclosure, kinds map[string]property.Kind) error {
	list := slices.Clone(d.given.Provable)
	for _, opens := range disclosures {
		kind, wanted := kinds[opens.Pointer]
		if !wanted {
			continue
		}
		commitment, err := opens.provable(kind)
		if err != nil {
			return &FieldError{Field: opens.Pointer, Reason: err.Error() + "; give a value of the kind, or name another kind"}
		}
		list = append(list, Provable{Commitment: commitment.String(), Kind: kind, Pointer: opens.Pointer})
	}
	if len(list) > 0 {
		slices.SortFunc(list, func(a, b Provable) int { return strings.Compare(a.Pointer, b.Pointer) })
		m["provable"] = marshal(list)
	}
	return nil
}

// provable computes the second commitment.
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

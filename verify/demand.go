package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/kit/plural"
)

// MaxDemands is how many demands a reader may have.
const MaxDemands = 16

// A Demand is what a reader wants to see proved of a member of records. Make one with [ParseDemand].
type Demand struct {
	Text     string // as it was given
	Audience string // for whom proofs must have been made; "": for everybody

	pointer string
	want    property.Statement // without kind and members
}

// IsDemand reports whether a text is meant as a demand: it begins with a form of statements and a colon.
func IsDemand(text string) bool {
	form, _, is := strings.Cut(text, ":")
	return is && slices.Contains(forms, property.Form(form))
}

var forms = []property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}

// ParseDemand reads a demand: form:/pointer=what. What is wanted is lo..hi for range, values with commas between them for in and
// not_in, and years@date for age_at_least. A value is JSON if it reads as that, and otherwise a string. The pointer ends at the first "=".
// Its error says which part is wrong, and where.
func ParseDemand(text string) (*Demand, error) {
	form, rest, _ := strings.Cut(text, ":")
	d := &Demand{Text: text, want: property.Statement{Format: property.Format, Form: property.Form(form)}}
	fail := func(position int, field, format string, args ...any) error {
		return fmt.Errorf("demand %q: %s at byte %d: %s", evidence.Abbreviate(text), field, position, fmt.Sprintf(format, args...))
	}
	if !IsDemand(text) {
		return nil, fail(0, "form", "%q is unknown: want one of %q, and a colon", evidence.Abbreviate(form), forms)
	}
	pointer, what, is := strings.Cut(rest, "=")
	switch at := len(form) + 1; {
	case len(pointer) < 2 || !jsontext.Pointer(pointer).IsValid():
		return nil, fail(at, "pointer", "%q is not a JSON pointer to a member, such as /metadata/action", evidence.Abbreviate(pointer))
	case !is:
		return nil, fail(len(text), "pointer", `want "=" and what is demanded after it`)
	}
	d.pointer = pointer
	if field, reason := d.read(what); reason != nil {
		return nil, fail(len(form)+len(pointer)+2, field, "%v", reason)
	}
	return d, nil
}

// read reads what is demanded. If that is wrong, it returns the name of the field and the reason.
func (d *Demand) read(what string) (string, error) {
	var err error
	switch d.want.Form {
	case property.Range:
		lo, hi, is := strings.Cut(what, "..")
		if !is {
			return "range", errors.New(`want two values and ".." between them, such as 0..5000`)
		}
		d.want.Lo, d.want.Hi = single(lo), single(hi)
		return "range", d.fits()
	case property.AgeAtLeast:
		years, at, is := strings.Cut(what, "@")
		if !is {
			return "age", errors.New(`want years, "@" and a date, such as 18@2026-11-23`)
		}
		if d.want.Years, err = strconv.Atoi(years); err != nil {
			return "years", fmt.Errorf("%.20q is not a number", years)
		}
		d.want.At = at
		return "age", d.fits()
	}
	d.want.Set, err = list(what)
	return "set", err
}

// fits returns an error unless the numbers are of any kind.
func (d *Demand) fits() error {
	var first error
	for _, kind := range ordered {
		err := d.as(kind).CheckBounds()
		if err == nil {
			return nil
		}
		if first == nil || kind == property.Date && d.isText() {
			first = err
		}
	}
	return first
}

// isText reports whether what is demanded has no numbers, but dates or times.
func (d *Demand) isText() bool { return d.want.Form == property.AgeAtLeast || d.want.Hi.Kind() == '"' }

var ordered = []property.Kind{property.Integer, "decimal:1", "decimal:2", "decimal:3", "decimal:4", "decimal:5", "decimal:6", "decimal:7", "decimal:8", "decimal:9", property.Date, property.Time}

// as returns what is demanded, as a statement about values of a kind.
func (d *Demand) as(kind property.Kind) *property.Statement {
	s := d.want
	s.Kind = kind
	return &s
}

// single reads a value: JSON if it reads as that, and otherwise a string.
func single(text string) jsontext.Value {
	value := jsontext.Value(text)
	if canonical, err := evidence.Canonical(value); err == nil {
		return canonical
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return jsontext.Value("null") // no text: no value is equal to it, and no kind has it
	}
	return quoted
}

// list reads values with commas between them. A string in quotes may have commas of its own.
func list(text string) (values []jsontext.Value, err error) {
	seen := map[string]bool{}
	for {
		item, rest, more := strings.Cut(text, ",")
		if strings.HasPrefix(text, `"`) {
			quoted, err := jsontext.NewDecoder(strings.NewReader(text)).ReadValue()
			if err != nil {
				return nil, fmt.Errorf("entry %d: a string begins that does not end", len(values))
			}
			item = string(quoted)
			rest, more = strings.CutPrefix(text[len(item):], ",")
			if !more && rest != "" {
				return nil, fmt.Errorf("entry %d: want a comma after %s", len(values), evidence.Abbreviate(item))
			}
		}
		value := single(item)
		switch {
		case item == "":
			return nil, fmt.Errorf(`entry %d is empty: write "" in quotes for an empty string`, len(values))
		case seen[string(value)]:
			return nil, fmt.Errorf("entry %d is there twice", len(values))
		case len(values) == property.MaxSet:
			return nil, fmt.Errorf("more than %d entries", property.MaxSet)
		}
		seen[string(value)] = true
		values = append(values, value)
		if !more {
			return values, nil
		}
		text = rest
	}
}

// A member is what a record shows of a member.
type member struct {
	there bool
	value jsontext.Value // in clear, or disclosed with a match for each commitment; nil: sealed apart, and not disclosed
}

// find finds a member of a payload, or of a disclosed value.
func find(r *evidence.Record, pointer string) member {
	value, path := jsontext.Value(r.Canonical()), ""
	for name := range jsontext.Pointer(pointer).Tokens() {
		inner, is := object(value)[name]
		if !is {
			return member{}
		}
		path = string(jsontext.Pointer(path).AppendToken(name))
		said, withheld := r.Said(path, inner)
		if withheld {
			return member{there: true}
		}
		value = said
	}
	return member{true, value}
}

// meets reports whether a value that is known meets the demand.
func (d *Demand) meets(value jsontext.Value) bool {
	if d.want.Form == property.In || d.want.Form == property.NotIn {
		allowed, err := d.as(property.Text).Allows(value)
		return err == nil && allowed
	}
	for _, kind := range ordered {
		if allowed, err := d.as(kind).Allows(value); err == nil {
			return allowed
		}
	}
	return false
}

// implied reports whether a statement that holds shows the demand of a record's member.
func (d *Demand) implied(s *property.Statement, record string) bool {
	self := property.Member{Record: record, Pointer: d.pointer}
	if s.Audience != d.Audience || !slices.Contains(s.Members, self) {
		return false
	}
	return s.Implies(d.as(s.Kind))
}

// A DemandAnswer says for how many records a demand is proved.
type DemandAnswer struct {
	Demand string `json:"demand"`
	Asked  int    `json:"asked"`  // records that have the member
	Proved int    `json:"proved"` // of these
	Met    bool   `json:"met"`    // there is one, and all are proved
}

// demanded is what became of a demand so far.
type demanded struct {
	*Demand
	asked, proved int
	open          []*pending // records whose value is hidden, in the order of the file
	byDigest      map[string]*pending
}

// A pending record is one of which proofs must show what is demanded.
type pending struct {
	record string
	proved bool
}

// shown is what a record shows of what is demanded.
type shown struct {
	*demanded
	member
	met bool
}

func (d *demanded) name() string { return fmt.Sprintf("the demand %q", evidence.Abbreviate(d.Text)) }

const (
	maxShown     = 1000    // statements that a report lists
	maxShownSize = 1 << 20 // bytes of these
)

// A ShownProperty is a statement that a carried proof shows.
type ShownProperty struct {
	Record    string         `json:"record"` // id of the record that carries the proof
	Statement jsontext.Value `json:"statement"`
}

// proofs is what the proofs of a file show.
type proofs struct {
	carried, proved int             // how many; of these, that hold
	shown           []ShownProperty // the first
	size            int             // bytes of all statements shown
	demands         []*demanded
	required        bool // the reader requires properties, and does not say which
}

// carried is a proof that a record carries, and what came of it.
type carried struct {
	evidence.PropertyProof
	statement *property.Statement // nil: it cannot be read
	open      string              // the rule by which it shows nothing; "": it is held against the record's commitment
	why       error               // why it shows nothing, or does not hold
}

// proofsOf checks the proofs that a record carries. Many records can be checked at once.
func proofsOf(r *evidence.Record) (list []carried) {
	size := 0
	for i, p := range r.Properties {
		one := carried{PropertyProof: p}
		if size += len(p.Statement) + len(p.Proof); size > evidence.MaxProofs {
			one.open, one.why = "volume", fmt.Errorf("its proofs have more than %d bytes, and what is beyond is not checked", evidence.MaxProofs)
			return append(list, one)
		}
		one.open, one.why = one.check(r, i)
		list = append(list, one)
	}
	return list
}

// check reads the statement, which must be about the record that carries it, and holds the proof against the record's commitment.
func (p *carried) check(r *evidence.Record, i int) (open string, why error) {
	s, err := property.ParseStatement(p.Statement)
	if err != nil {
		return "statement", fmt.Errorf("proof %d: %w", i, err)
	}
	p.statement = s
	m := s.Members[0]
	if m.Record != r.Digest.String() {
		return "record", fmt.Errorf("proof %d is about another record, %s", i, m.Record)
	}
	at := slices.IndexFunc(r.Payload.Provable, func(known evidence.Provable) bool { return known.Pointer == m.Pointer && known.Kind == s.Kind })
	if at < 0 {
		return "unprovable", fmt.Errorf("it has no provable member of the kind %s at %s", s.Kind, evidence.Abbreviate(m.Pointer))
	}
	c, err := property.ParseCommitment(r.Payload.Provable[at].Commitment)
	if err != nil {
		return "unprovable", err // cannot happen: opening refuses such a payload
	}
	if err = property.Verify(s, c, p.Proof); err != nil && !errors.Is(err, property.ErrProof) {
		return "statement", err
	}
	return "", err
}

// prove takes in what the proofs of the next record show, and asks each demand of it.
func (c *check) prove(r *evidence.Record, list []carried, shows []member) {
	all := &c.proofs
	for i, m := range shows {
		d := all.demands[i]
		s := shown{d, m, m.value != nil && d.meets(m.value)}
		ask(&c.findings, rulesOfValue, r, s)
		switch {
		case !m.there:
			continue
		case m.value == nil:
			p := &pending{record: r.Payload.RecordID}
			d.open, d.byDigest[r.Digest.String()] = append(d.open, p), p
		case s.met:
			d.proved++
		}
		d.asked++
	}
	all.carried += len(r.Properties)
	for i := range list {
		ask(&c.findings, rulesOfProof, r, &list[i])
	}
	for _, p := range list {
		if p.why == nil {
			all.take(r.Payload.RecordID, &p)
		}
	}
}

// take keeps a proof that holds.
func (all *proofs) take(record string, p *carried) {
	all.proved++
	for _, d := range all.demands {
		about := p.statement.Members[0].Record
		if open := d.byDigest[about]; open != nil && !open.proved {
			open.proved = d.implied(p.statement, about)
		}
	}
	if all.size += len(p.Statement); all.size <= maxShownSize && len(all.shown) < maxShown {
		all.shown = append(all.shown, ShownProperty{record, p.Statement})
	}
}

// proven sums up the proofs.
func (c *check) proven() {
	n := c.proofs.proved
	c.notes[Property] = fmt.Sprintf("%s %s, about values to which the actors committed; they chose these values, and nothing shows that they are true. "+
		"It holds while discrete logarithms on P-256 are hard", plural.Of(n, "proof"), plural.Or(n, "holds", "hold"))
	if c.proofs.carried == 0 {
		c.notes[Property] = "the values that the file shows are as demanded"
	}
	ask(&c.findings, rulesOfProofs, nil, &c.proofs)
}

// demands says what came of the reader's demands. That is known when all else is.
func (c *check) demands() (answers []DemandAnswer) {
	for _, d := range c.proofs.demands {
		ask(&c.findings, rulesOfDemand, nil, d)
		for _, p := range d.open {
			if p.proved {
				d.proved++
			}
		}
		answers = append(answers, DemandAnswer{Demand: d.Text, Asked: d.asked, Proved: d.proved, Met: d.asked > 0 && d.proved == d.asked})
	}
	return answers
}

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
)

type proveCmd struct {
	Source []string `arg:"" name:"record" help:"A record file or case file (- is standard input), or the ids of records of your log."`

	Range      []string `help:"The value lies from LO to HI." placeholder:"POINTER=LO..HI" sep:"none" group:"What to prove (each may be repeated)"`
	In         []string `help:"The value is one of these." placeholder:"POINTER=A,B,…" sep:"none" group:"What to prove (each may be repeated)"`
	NotIn      []string `help:"The value is none of these." placeholder:"POINTER=A,B,…" sep:"none" group:"What to prove (each may be repeated)"`
	AgeAtLeast []string `help:"A date at least YEARS before DATE." placeholder:"POINTER=YEARS@DATE" sep:"none" group:"What to prove (each may be repeated)"`

	Audience string   `help:"For whom the proof is made. It is part of what is proved." placeholder:"NAME"`
	Record   []string `help:"Only of the record with this id. May be repeated. Default: all of FILE that have the field provable." placeholder:"ID" sep:"none"`
	Values   string   `help:"Take the values from this file, which has them." placeholder:"FILE"`
	Disclose bool     `help:"Leave the proved values in the file."`
	Remove   []int    `help:"Remove the proof with this number from the file; --list shows the numbers. May be repeated." placeholder:"N" sep:"none"`
	List     bool     `help:"List the proofs of the file, and write nothing."`
	Out      string   `short:"o" help:"The file to write, which must not be there. Default: standard output." placeholder:"FILE"`
	jsonFlag
}

type proofOf struct {
	Bytes     int            `json:"bytes"`
	Number    int            `json:"number"` // in the file, from 1
	Record    string         `json:"record"`
	Statement jsontext.Value `json:"statement"`
}

type provable struct {
	file    marshaler
	records []*evidence.Record
	own     map[*evidence.Record][]string                                       // what the file itself discloses, by pointers; --values and the log have more
	lacks   func(ctx context.Context, r *evidence.Record, pointer string) error // says why a value is not there, and what to do
}

func (c *proveCmd) Run(ctx context.Context, a *app, std stdio) error {
	wishes, err := c.wishes()
	if err := cmp.Or(err, c.check(wishes)); err != nil {
		return err
	}
	if slices.ContainsFunc(c.Source, func(s string) bool { return evidence.CheckRecordID(s) != nil }) {
		p, err := c.fromFile(std)
		return c.change(ctx, std, p, err, wishes)
	}
	if c.List || len(c.Remove) > 0 || c.Values != "" || len(c.Record) > 0 {
		return errors.New("--list, --remove, --values and --record are for a file, and not for records of the log, which carry no proofs")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		p, err := c.fromLog(ctx, i)
		return c.change(ctx, std, p, err, wishes)
	})
}

func (c *proveCmd) check(wishes []wish) error {
	asked := len(wishes)+len(c.Remove) > 0
	return cmp.Or(hint(refuse(!asked && !c.List, "nothing is to be proved"), "say what: --range, --in, --not-in or --age-at-least; or --list, --remove"),
		refuse(c.List && asked, "--list writes nothing, and goes with no other request"),
		refuse(c.JSON && c.Out == "" && !c.List, "--json prints the statements on standard output, where the file would be: name the file with --out"),
		refuse(len(wishes) > 0 && len(c.Remove) > 0, "--remove goes alone: prove first, then look at the numbers with --list"))
}

func (c *proveCmd) fromFile(std stdio) (*provable, error) {
	if len(c.Source) > 1 {
		return nil, fmt.Errorf("want one file, or ids of records of your log, and %q is no id", c.Source[slices.IndexFunc(c.Source, func(s string) bool { return evidence.CheckRecordID(s) != nil })])
	}
	name := c.Source[0]
	doc, err := readInput(std.in, name)
	if err != nil {
		return nil, hint(err, "name a file, or the id of a record of your log")
	}
	p := &provable{own: map[*evidence.Record][]string{}}
	if p.file, p.records, err = openFile(doc); err != nil {
		return nil, hint(fmt.Errorf("%s: %w", name, err), "only a whole record or case file can carry a proof; 'jurat verify' says more")
	}
	for _, r := range p.records {
		for _, d := range r.Disclosures {
			p.own[r] = append(p.own[r], d.Pointer)
		}
	}
	p.lacks = func(ctx context.Context, r *evidence.Record, pointer string) error {
		return hint(fmt.Errorf("%s: record %s: field %s: %w", name, r.Payload.RecordID, pointer, evidence.ErrWithheld),
			"'jurat prove %s' takes it from your installation, if that keeps it; --values FILE takes it from another file", r.Payload.RecordID)
	}
	if c.Values == "" {
		return p, nil
	}
	return p, p.addValues(std, c.Values)
}

func (p *provable) addValues(std stdio, name string) error {
	doc, err := readInput(std.in, name)
	if err != nil {
		return err
	}
	_, others, err := openFile(doc)
	if err != nil {
		return fmt.Errorf("--values: %s: %w", name, err)
	}
	found := false
	for _, r := range p.records {
		for _, other := range others {
			if other.Digest == r.Digest {
				found, r.Disclosures = true, joinDisclosures(r.Disclosures, other.Disclosures)
			}
		}
	}
	if !found {
		return hint(fmt.Errorf("--values: %s has none of these records", name), "it must be the same record, before it was sent away")
	}
	return nil
}

// joinDisclosures adds to a those of b that a lacks, in the order of a file.
func joinDisclosures(a, b []evidence.Disclosure) []evidence.Disclosure {
	all := slices.Clone(a)
	for _, d := range b {
		if !slices.ContainsFunc(a, func(o evidence.Disclosure) bool { return o.Pointer == d.Pointer }) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b evidence.Disclosure) int { return strings.Compare(a.Pointer, b.Pointer) })
	return all
}

func (c *proveCmd) fromLog(ctx context.Context, i *installation.Installation) (*provable, error) {
	records, err := each(c.Source, func(id string) (*evidence.Record, error) {
		r, err := i.Ledger.Record(ctx, id)
		if fault.While(&err, "record %q", id); err != nil {
			return nil, hintIf(ledger.ErrExpired, err, "a proof can only be made from the value; proofs that you made before still hold")
		}
		r, err = i.Apart.Disclose(ctx, r, nil)
		return r, hint(err, lookForMore)
	})
	if err != nil {
		return nil, err
	}
	bundle, err := i.Ledger.Prove(ctx, records...)
	if err != nil {
		return nil, err
	}
	if len(records) > 1 {
		return &provable{file: bundle, records: bundle.Records, lacks: missingIn(i)}, nil
	}
	alone, err := i.Ledger.ProveOne(ctx, records[0])
	return &provable{file: alone, records: []*evidence.Record{alone}, lacks: missingIn(i)}, err
}

func missingIn(i *installation.Installation) func(context.Context, *evidence.Record, string) error {
	return func(ctx context.Context, r *evidence.Record, pointer string) error {
		_, err := i.Apart.Open(ctx, r.Digest, pointer)
		err = fmt.Errorf("record %s: field %s: %w", r.Payload.RecordID, pointer, err)
		switch {
		case errors.Is(err, erasure.ErrNone):
			return hint(err, "it was erased, or its key was lost, and a proof needs the value: earlier proofs hold; --values takes a file that discloses it")
		case errors.Is(err, erasure.ErrElsewhere):
			return hint(err, "ask the actor for the proof: 'jurat prove FILE --values' makes it where the value is")
		}
		return err
	}
}

func (c *proveCmd) change(ctx context.Context, std stdio, p *provable, unread error, wishes []wish) error {
	switch {
	case unread != nil:
		return unread
	case c.List:
		return c.say(std, proofsOf(p.records))
	}
	if err := p.remove(c.Remove); err != nil {
		return err
	}
	added, err := c.prove(ctx, std, p, wishes)
	if err != nil {
		return err
	}
	for _, r := range p.records {
		r.Disclosures = slices.DeleteFunc(slices.Clone(r.Disclosures), func(d evidence.Disclosure) bool {
			if p.proved(added, r, d.Pointer) {
				return !c.Disclose
			}
			return !slices.Contains(p.own[r], d.Pointer) // a reader of the proof gets no text that the file did not have
		})
	}
	if err := writeTo(std, c.Out, p.file); err != nil {
		return err
	}
	shown := p.shown(added)
	std.tellIf(shown != nil, "note: the file still shows %s, as the one you gave did; 'jurat export --withhold' takes texts out", inert(strings.Join(shown, ", ")))
	if c.Out != "" {
		return c.say(std, slices.DeleteFunc(proofsOf(p.records), func(one proofOf) bool {
			return !slices.ContainsFunc(added, func(m *proved) bool { return string(m.statement) == string(one.Statement) })
		}))
	}
	return nil
}

func (c *proveCmd) prove(ctx context.Context, std stdio, p *provable, wishes []wish) (made []*proved, err error) {
	for _, w := range wishes {
		members, err := w.members(p.records, c.Record)
		if err != nil {
			return nil, hint(err, "'jurat seal --provable' and 'jurat apart --provable' make fields provable; later it cannot be done")
		}
		for _, m := range members {
			one, err := c.proveOne(ctx, std, p, w, m)
			if err != nil {
				return nil, err
			}
			made = append(made, one)
		}
	}
	return made, nil
}

// shown lists the fields of whose values nothing was proved now, and that the file shows.
func (p *provable) shown(made []*proved) (pointers []string) {
	for _, r := range p.records {
		for _, d := range r.Disclosures {
			if !p.proved(made, r, d.Pointer) && !slices.Contains(pointers, d.Pointer) {
				pointers = append(pointers, d.Pointer)
			}
		}
	}
	slices.Sort(pointers)
	return pointers
}

type proved struct {
	evidence.Member
	statement jsontext.Value
}

func (c *proveCmd) proveOne(ctx context.Context, std stdio, p *provable, w wish, m evidence.Member) (*proved, error) {
	r := m.Record
	said, err := m.Provable()
	if err != nil {
		return nil, err
	}
	s, err := evidence.ParseProperty(w.form, said.Kind, w.value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.flag, err)
	}
	s.Audience = c.Audience
	proof, err := m.Prove(s, rand.Reader)
	switch {
	case errors.Is(err, evidence.ErrWithheld):
		return nil, p.lacks(ctx, r, m.Pointer)
	case errors.Is(err, property.ErrFalse):
		return nil, hint(fmt.Errorf("%s: record %s: %w", w.flag, r.Payload.RecordID, err), "nothing was written")
	case err != nil:
		return nil, fmt.Errorf("%s: %w", w.flag, err)
	}
	if err := r.AddProof(proof); err != nil {
		return nil, err
	}
	if statement, err := property.ParseStatement(proof.Statement); err == nil && statement.Warning() != "" {
		std.tell("warning: %s: record %s: %s", w.flag, r.Payload.RecordID, statement.Warning())
	}
	return &proved{m, proof.Statement}, nil
}

func (p *provable) proved(made []*proved, r *evidence.Record, pointer string) bool {
	return slices.ContainsFunc(made, func(one *proved) bool { return one.Record == r && one.Pointer == pointer })
}

func (p *provable) remove(numbers []int) error {
	n := len(proofsOf(p.records))
	for _, number := range numbers {
		if number < 1 || number > n {
			return hint(fmt.Errorf("--remove %d: the file carries %s", number, plural.Of(n, "proof")), "--list shows them with their numbers")
		}
	}
	n = 0
	for _, r := range p.records {
		r.Properties = slices.DeleteFunc(slices.Clone(r.Properties), func(evidence.PropertyProof) bool { n++; return slices.Contains(numbers, n) })
	}
	return nil
}

func proofsOf(records []*evidence.Record) []proofOf {
	list := []proofOf{}
	for _, r := range records {
		for _, proof := range r.Properties {
			list = append(list, proofOf{Bytes: len(proof.Proof), Number: len(list) + 1, Record: r.Payload.RecordID, Statement: proof.Statement})
		}
	}
	return list
}

func (c *proveCmd) say(std stdio, list []proofOf) error {
	return c.answer(std, list, nil, func(p *printer) {
		for _, one := range list {
			p.line("%d. record %s: %s (%s)", one.Number, one.Record, one.Statement, plural.Of(one.Bytes, "byte"))
		}
	})
}

// A wish is one statement that is to be proved, as flags say it.
type wish struct {
	flag    string // for messages
	form    property.Form
	pointer string
	value   string
}

func (c *proveCmd) wishes() (list []wish, err error) {
	add := func(flag string, form property.Form, texts []string) {
		for _, text := range texts {
			field, value, there := strings.Cut(text, "=")
			pointer, wrong := evidence.Pointer(field)
			err = cmp.Or(err, refuse(!there, "%s %s: want POINTER=…, as /metadata/amount=…", flag, text), refuse(wrong != nil, "%s: %w", flag, wrong))
			list = append(list, wish{flag + " " + text, form, pointer, value})
		}
	}
	add("--range", property.Range, c.Range)
	add("--in", property.In, c.In)
	add("--not-in", property.NotIn, c.NotIn)
	add("--age-at-least", property.AgeAtLeast, c.AgeAtLeast)
	return list, err
}

// members are those of which the statement is to be proved. only names the records that it is asked of; nil: those that have the field provable.
func (w *wish) members(records []*evidence.Record, only []string) (list []evidence.Member, err error) {
	for _, r := range records {
		m := evidence.Member{Record: r, Pointer: w.pointer}
		_, err := m.Provable()
		named := slices.Contains(only, r.Payload.RecordID)
		switch {
		case len(only) > 0 && !named, len(records) > 1 && !named && err != nil:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", w.flag, err)
		}
		list = append(list, m)
	}
	for _, id := range only {
		if !slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.RecordID == id }) {
			return nil, fmt.Errorf("--record: the file has no record %q", id)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no record has this field provable", w.flag)
	}
	return list, nil
}

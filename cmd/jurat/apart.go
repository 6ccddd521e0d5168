package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/erasure"
	"jurat/internal/installation"
	"jurat/property"
)

// readPointers reads what a flag names: a field of a payload, such as prompt or /metadata/user_id.
func readPointers(flag string, texts []string) ([]string, error) {
	pointers := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if pointers[i], err = evidence.Pointer(text); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	return pointers, nil
}

// readProvable reads what --provable names: fields, each with the kind of its value.
func readProvable(texts []string) (map[string]property.Kind, error) {
	kinds := map[string]property.Kind{}
	for _, text := range texts {
		field, kind, there := strings.Cut(text, "=")
		if !there {
			return nil, fmt.Errorf("--provable: %q: want POINTER=KIND, as /metadata/amount=decimal:2", text)
		}
		pointer, err := evidence.Pointer(field)
		if err == nil {
			err = property.Kind(kind).Check()
		}
		if err != nil {
			return nil, fmt.Errorf("--provable: %w", err)
		}
		if _, twice := kinds[pointer]; twice {
			return nil, fmt.Errorf("--provable: %s is named twice", pointer)
		}
		kinds[pointer] = property.Kind(kind)
	}
	return kinds, nil
}

// named lists what a setting seals apart, with the kinds of what it makes provable.
func named(s *erasure.Setting) []string {
	list := slices.Clone(s.Pointers)
	for i, pointer := range list {
		if kind, provable := s.Provable[pointer]; provable {
			list[i] += "=" + string(kind)
		}
	}
	return list
}

// withholdFlag says which texts are left out of what is printed.
type withholdFlag struct {
	Withhold []string `help:"Leave out the text of this field, which was sealed apart; 'all' leaves out every one. May be given several times." placeholder:"POINTER" sep:"none"`
}

// disclose adds to records the texts that are sealed apart, except the withheld ones.
func (f *withholdFlag) disclose(ctx context.Context, i *installation.Installation, records ...*evidence.Record) ([]*evidence.Record, error) {
	all := slices.Contains(f.Withhold, "all")
	withheld, err := readPointers("--withhold", slices.DeleteFunc(slices.Clone(f.Withhold), func(p string) bool { return p == "all" }))
	if err != nil {
		return nil, err
	}
	// Asked before anything is disclosed, and of records without disclosures: it only says whether it can be.
	if _, err := evidence.Withhold(records, withheld); err != nil {
		return nil, fmt.Errorf("--withhold: %w", err)
	}
	if all {
		return records, nil
	}
	disclosed := make([]*evidence.Record, len(records))
	for n, r := range records {
		if disclosed[n], err = i.Apart.Disclose(ctx, r, withheld); errors.Is(err, erasure.ErrDamaged) || errors.Is(err, evidence.ErrDisclosure) {
			return nil, hint(err, "--withhold leaves it out, and the proofs stand; 'jurat log fsck' looks for more of the kind")
		}
		if err != nil {
			return nil, err
		}
	}
	return disclosed, nil
}

// apartTexts are the texts of a file's records that are not part of what was signed.
type apartTexts struct{ disclosed, withheld fewTexts }

// fewTexts are the first of many, by record and pointer, as there may be more than fit into the memory.
type fewTexts struct {
	first [][2]string
	count int
}

func (f *fewTexts) add(record, pointer string) {
	if f.count++; f.count <= mostTexts {
		f.first = append(f.first, [2]string{record, pointer})
	}
}

const mostTexts = 12

func (a *apartTexts) see(r *evidence.Record) {
	disclosed := map[string]bool{} // a record can have very many
	for _, d := range r.Disclosures {
		disclosed[d.Pointer] = true
	}
	for _, pointer := range r.Payload.SealedApart {
		if disclosed[pointer] {
			a.disclosed.add(r.Payload.RecordID, pointer)
		} else {
			a.withheld.add(r.Payload.RecordID, pointer)
		}
	}
}

// apart says which texts are not part of what was signed, and which of them the file does not have. Whether those that it
// has are right, the report says under content.
func (p *printer) apart(indent string, a *apartTexts, ofMany bool) {
	p.few(indent, "Sealed apart and disclosed in the file: ", a.disclosed, ofMany)
	p.few(indent, "Sealed apart and withheld (what is signed commits to the text, which is not in the file): ", a.withheld, ofMany)
}

func (p *printer) few(indent, what string, f fewTexts, ofMany bool) {
	var names []string
	for _, text := range f.first {
		name := text[1]
		if ofMany {
			name += " of record " + text[0]
		}
		names = append(names, name)
	}
	more := ""
	if f.count > len(f.first) {
		more = fmt.Sprintf(", and %d more", f.count-len(f.first))
	}
	if f.count > 0 {
		p.text(indent, what+strings.Join(names, ", ")+more+".")
	}
}

type apartCmd struct {
	Actor    string   `arg:"" optional:"" help:"The actor's name, as in agent_id or reviewer_id."`
	Pointers []string `arg:"" optional:"" name:"pointer" help:"From now on, seal these fields of its payloads apart: prompt, context, response, tools_used, /metadata/NAME, …"`
	Provable []string `help:"Seal this field apart so that properties of its value can be proved: /metadata/amount=decimal:2. May be given several times." placeholder:"POINTER=KIND" sep:"none"`
	None     bool     `help:"Seal the actor's fields as a whole again."`
	jsonFlag
}

func (c *apartCmd) Run(ctx context.Context, a *app, io stdio) error {
	pointers, err := readPointers("POINTER", c.Pointers)
	if err != nil {
		return err
	}
	provable, err := readProvable(c.Provable)
	if err != nil {
		return err
	}
	sets := len(pointers)+len(provable) > 0
	if (sets || c.None) && (c.Actor == "" || c.JSON || sets && c.None) {
		return hint(errors.New("want an actor with fields, an actor with --none, or neither"), "'jurat apart' lists what is sealed apart")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		switch {
		case c.None:
			return hint(i.Apart.Unset(ctx, c.Actor), "'jurat apart' shows them")
		case sets:
			return i.Apart.Set(ctx, erasure.Setting{Actor: c.Actor, Pointers: pointers, Provable: provable})
		}
		return c.list(ctx, i, io)
	})
}

func (c *apartCmd) list(ctx context.Context, i *installation.Installation, io stdio) error {
	list, err := i.Apart.Settings(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(s erasure.Setting) bool { return c.Actor != "" && s.Actor != c.Actor })
	t := table{heads: []head{{name: "actor"}, {name: "fields", rank: 1}}}
	for _, s := range list {
		t.row(s.Actor, strings.Join(named(&s), " "))
	}
	return c.jsonFlag.list(io, list, &t, "")
}

type eraseCmd struct {
	Record        string   `arg:"" help:"The record's id."`
	Field         []string `required:"" help:"The field whose text to destroy: prompt, or /metadata/user_id. May be given several times." placeholder:"POINTER" sep:"none"`
	Reason        string   `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By            newName  `required:"" help:"Which person decided it." placeholder:"WHO"`
	DespiteQuotes bool     `help:"Erase although the text stands in other records, too, where it stays."`
}

func (c *eraseCmd) Run(ctx context.Context, a *app, io stdio) error {
	pointers, err := readPointers("--field", c.Field)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Eraser.Erase(ctx, erasure.Order{RecordID: c.Record, Pointers: pointers, Reason: c.Reason, By: string(c.By),
			DespiteQuotes: c.DespiteQuotes, Progress: progress(io, "looked for the text in")})
		if done != nil {
			c.told(io, done)
		}
		var quoted *erasure.QuotedError
		switch {
		case errors.As(err, &quoted):
			return hint(err, "erase those first where they are sealed apart, or say --despite-quotes; nothing was erased")
		case errors.Is(err, evidence.ErrNotApart):
			return hint(err, "what may have to be erased is sealed apart at once: 'jurat seal --apart', 'jurat apart'")
		case err != nil:
			return err
		}
		return c.say(io, done)
	})
}

// told says on stderr what the search found.
func (c *eraseCmd) told(io stdio, done *erasure.Erased) {
	for _, q := range done.Quotes {
		what := "holds the text"
		switch {
		case q.Reason != "":
			what = "cannot be searched: " + q.Reason
		case q.Part:
			what = "quotes a part of the text"
		}
		fmt.Fprintf(io.err, "jurat: record %s: %s: %s of %s %q %s\n", q.RecordID, q.Member, plain(q.Action), q.Role, q.Actor, what)
	}
	for _, pointer := range done.TooShort {
		fmt.Fprintf(io.err, "jurat: %s: it holds no text of 8 characters or more, so it was not looked for in other records\n", pointer)
	}
}

func (c *eraseCmd) say(io stdio, done *erasure.Erased) error {
	p := newPrinter(io.out)
	for _, pointer := range done.Now {
		p.line("erased %s of record %s: act %s", pointer, c.Record, done.Act)
	}
	for _, pointer := range slices.Sorted(maps.Keys(done.Before)) {
		if act := done.Before[pointer]; act != "" {
			p.line("%s of record %s was erased already: act %s", pointer, c.Record, act)
			continue
		}
		p.line("%s of record %s: an erasure that was broken off is finished", pointer, c.Record)
	}
	return p.err
}

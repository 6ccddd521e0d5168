package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/court/acts"
	"jurat/internal/kit/fault"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/token"
)

type sealCmd struct {
	File       string   `arg:"" optional:"" default:"-" help:"A payload in JSON, or a record that its owner has signed; - is standard input."`
	Signatures []string `name:"signature" placeholder:"FILE" help:"The owner's signature over FILE, which is canonical. Repeat it for a second one."`
	signFlags
	keyFlags
	stampFlags
	Apart    []string `help:"Seal this field apart: prompt, or /metadata/user_id. Only now: later it cannot be. May be repeated." placeholder:"POINTER" sep:"none"`
	Provable []string `help:"Seal this field apart, for 'jurat prove': /metadata/amount=decimal:2. May be repeated." placeholder:"POINTER=KIND" sep:"none"`
}

func (c *sealCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.SignOnly {
		return c.sign(ctx, std)
	}
	if len(c.Key)+len(c.Token)+len(c.Public) > 0 || c.Prepare {
		return hint(errors.New("--key, --token, --prepare and --public go with --sign-only"), "what an installation seals is signed with the keys that it has")
	}
	doc, err := readInput(std.in, c.File)
	if err != nil {
		return err
	}
	if len(c.Signatures) > 0 || evidence.BeginsAsRecord(doc) {
		if len(c.Apart)+len(c.Provable) > 0 {
			return hint(errors.New("--apart, --provable: what its owner has signed stays as it is; the owner seals apart before signing"),
				"'jurat seal --sign-only' takes the same flags")
		}
		return c.accept(ctx, a, std, doc)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields; nothing was recorded")
	}
	if err := acts.Sealable(&draft.Payload); err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "acts of a trial are sealed by 'jurat trial' alone")
	}
	apart, err := readApart("--apart", c.Apart, c.Provable)
	if err != nil {
		return err
	}
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		done, err := actsOn(i).Seal(ctx, acts.Order{By: acts.Operator, Apart: apart.Pointers, Provable: apart.Provable}, draft)
		return printSealed(ctx, std, i, done, err)
	})
}

func actsOn(i *installation.Installation) *acts.Acts {
	return acts.New(acts.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now})
}

func printSealed(ctx context.Context, std stdio, i *installation.Installation, done *acts.Done, err error) error {
	if err != nil {
		return actHint(err)
	}
	p := &done.Record.Payload
	switch {
	case !done.Bound:
		std.tell("hint: the %s is not bound to what it is about: this log has no record %q", p.ActionType, p.OriginalResponseID)
	case !done.Names.IsZero():
		std.tell("hint: the %s is not bound to what it is about: saw lacks the digest of record %q, which is %s", p.ActionType, p.OriginalResponseID, done.Names)
	}
	catchUp(ctx, std, i)
	proved, err := i.Ledger.ProveOne(ctx, done.Record)
	if err != nil {
		return err
	}
	id := p.RecordID
	std.tellIf(done.Before, "hint: record %s was in the log already; nothing was added", id)
	return hint(std.print(proved, nil), "record %s is in the log; 'jurat log prove %s' prints it", id, id)
}

type signFlags struct {
	SignOnly bool     `name:"sign-only" help:"Only sign, with your own key: an installation elsewhere seals what is printed."`
	Key      []string `placeholder:"FILE" help:"With --sign-only: your private key, PKCS #8 in PEM. A second one makes the second signature."`
	Token    []string `placeholder:"URI" help:"With --sign-only: your private key on a token, in place of --key: pkcs11:token=LABEL;object=NAME."`
	helperFlag
	Prepare bool     `help:"With --sign-only: only print the bytes that are to be signed, for the keys that --public names."`
	Public  []string `placeholder:"FILE" help:"With --prepare: the public key in PEM. Repeat it for a second signature."`
}

func (c *sealCmd) sign(ctx context.Context, std stdio) (err error) {
	err = cmp.Or(refuse(len(c.Signatures) > 0 || c.TSA != nil || c.PostQuantum, "--signature, --tsa and --pq are for what is sealed here, not for --sign-only"),
		refuse(c.Prepare && (len(c.Public) == 0 || len(c.Key)+len(c.Token) > 0), "--prepare takes the public keys with --public FILE, and neither --key nor --token"),
		refuse(c.Prepare && len(c.Apart)+len(c.Provable) > 0, "--prepare prints what is signed: texts of --apart and --provable would be lost; use --key or --token"),
		hint(refuse(!c.Prepare && (len(c.Key)+len(c.Token) == 0 || len(c.Public) > 0), "want --key FILE or --token URI"), "sign elsewhere: --prepare --public FILE"))
	if err != nil {
		return err
	}
	doc, err := readInput(std.in, c.File)
	if err != nil {
		return err
	}
	if c.Prepare {
		return c.prepare(std, doc)
	}
	signers, err := readKeys(c.Key, client.ParseKey)
	if err != nil {
		return err
	}
	helper := &token.Helper{}
	defer helper.Close()
	onToken, err := c.onToken(ctx, helper)
	if err != nil {
		return err
	}
	apart, err := readApart("--apart", c.Apart, c.Provable)
	if err != nil {
		return err
	}
	signed, err := client.SignApart(doc, apart, append(signers, onToken...)...)
	if !errors.Is(err, token.ErrUnavailable) {
		err = hint(err, "'docs/format.md' lists the fields")
	}
	return std.print(signed, err)
}

func (c *sealCmd) onToken(ctx context.Context, helper *token.Helper) ([]evidence.Signer, error) {
	references, err := c.known(ctx, helper, c.Token)
	if err != nil {
		return nil, err
	}
	return each(references, func(r token.Reference) (signer evidence.Signer, err error) {
		key, err := helper.Signer(r)
		if err != nil {
			return signer, err
		}
		return evidence.NewSigner(key, nil)
	})
}

func (c *sealCmd) prepare(std stdio, doc []byte) error {
	keys, err := readKeys(c.Public, client.ParsePublicKey)
	if err != nil {
		return err
	}
	canonical, err := client.Prepare(doc, keys...)
	return std.document(canonical, hint(err, "'docs/format.md' lists the fields"))
}

func readKeys[K any](files []string, parse func([]byte) (K, error)) ([]K, error) {
	return each(files, func(file string) (K, error) { return parsed(file, parse) })
}

func (c *sealCmd) accept(ctx context.Context, a *app, std stdio, doc []byte) error {
	signed, err := c.signed(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing record: %w", err), "'jurat seal --sign-only' makes what is taken in here; nothing was recorded")
	}
	if err := acts.Acceptable(&signed.Payload); err != nil {
		return fmt.Errorf("refusing record: %w", err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := actsOn(i).Accept(ctx, acts.Operator, signed)
		return printSealed(ctx, std, i, done, err)
	}, c.TSA...)
}

func (c *sealCmd) signed(doc []byte) (*evidence.Record, error) {
	if len(c.Signatures) == 0 {
		r, _, err := evidence.Read(doc)
		return r, err
	}
	signatures, err := each(c.Signatures, os.ReadFile)
	if err != nil {
		return nil, err
	}
	return client.Assemble(doc, signatures...)
}

func actHint(err error) error {
	if duplicate, is := errors.AsType[*ledger.DuplicateError](err); is {
		return hint(err, "'jurat log prove %s' prints the one in the log; what is new needs a record_id of its own", duplicate.RecordID)
	}
	switch field, is := errors.AsType[*evidence.FieldError](err); {
	case is && field.Field == "saw":
		return hint(fmt.Errorf("refusing payload: %w", err), "a sealed record has its digest in the member 'digest'; nothing was recorded")
	case is:
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields, 'jurat apart' what is always sealed apart; nothing was recorded")
	}
	return err
}

// readPointers reads what a flag names: a field of a payload, such as prompt or /metadata/user_id.
func readPointers(flag string, texts []string) ([]string, error) {
	pointers, err := each(texts, evidence.Pointer)
	fault.While(&err, "%s", flag)
	return pointers, err
}

// readApart reads the fields that a flag names, and those that --provable names with the kinds of their values.
func readApart(flag string, fields, provable []string) (apart client.Apart, err error) {
	if apart.Pointers, err = readPointers(flag, fields); err != nil {
		return apart, err
	}
	apart.Provable = map[string]property.Kind{}
	for _, text := range provable {
		field, kind, there := strings.Cut(text, "=")
		if !there {
			return apart, fmt.Errorf("--provable: %q: want POINTER=KIND, as /metadata/amount=decimal:2", text)
		}
		pointer, err := evidence.Pointer(field)
		if err == nil {
			err = property.Kind(kind).Check()
		}
		if err != nil {
			return apart, fmt.Errorf("--provable: %w", err)
		}
		if _, twice := apart.Provable[pointer]; twice {
			return apart, fmt.Errorf("--provable: %s is named twice", pointer)
		}
		apart.Provable[pointer] = property.Kind(kind)
	}
	return apart, nil
}

func named(s *erasure.Setting) []string {
	list := slices.Clone(s.Pointers)
	for i, pointer := range list {
		if kind, provable := s.Provable[pointer]; provable {
			list[i] += "=" + string(kind)
		}
	}
	return list
}

type withholdFlag struct {
	Withhold []string `help:"Leave out the text of this field, which was sealed apart; 'all': every one. May be repeated." placeholder:"POINTER" sep:"none"`
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
	return each(records, func(r *evidence.Record) (*evidence.Record, error) {
		disclosed, err := i.Apart.Disclose(ctx, r, withheld)
		if errors.Is(err, erasure.ErrDamaged) || errors.Is(err, evidence.ErrDisclosure) {
			err = hint(err, "--withhold leaves it out, and the proofs stand; 'jurat log fsck' looks for more of the kind")
		}
		return disclosed, err
	})
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

// apart says which texts are not part of what was signed, and which the file lacks. Whether the others are right, the report says under content.
func (p *printer) apart(indent string, a *apartTexts, ofMany bool) {
	p.few(indent, "Sealed apart and disclosed in the file: ", a.disclosed, ofMany)
	p.few(indent, "Sealed apart and withheld (what is signed commits to the text, which is not in the file): ", a.withheld, ofMany)
}

func (p *printer) few(indent, what string, f fewTexts, ofMany bool) {
	names := joined(f.first, ", ", func(text [2]string) string { return text[1] + pick(ofMany, " of record "+text[0], "") })
	more := pick(f.count > len(f.first), fmt.Sprintf(", and %d more", f.count-len(f.first)), "")
	p.textIf(f.count > 0, indent, "%s%s%s.", what, names, more)
}

type apartCmd struct {
	Actor    string   `arg:"" optional:"" help:"The actor's name, as in agent_id or reviewer_id."`
	Pointers []string `arg:"" optional:"" name:"pointer" help:"Seal these fields apart from now on: prompt, context, response, tools_used, /metadata/NAME, …"`
	Provable []string `help:"Seal this field apart, for 'jurat prove': /metadata/amount=decimal:2. May be repeated." placeholder:"POINTER=KIND" sep:"none"`
	None     bool     `help:"Seal the actor's fields as a whole again."`
	jsonFlag
}

func (c *apartCmd) Run(ctx context.Context, a *app, std stdio) error {
	apart, err := readApart("POINTER", c.Pointers, c.Provable)
	if err != nil {
		return err
	}
	sets := len(apart.Pointers)+len(apart.Provable) > 0
	if (sets || c.None) && (c.Actor == "" || c.JSON || sets && c.None) {
		return hint(errors.New("want an actor with fields, an actor with --none, or neither"), "'jurat apart' lists what is sealed apart")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		switch {
		case c.None:
			return hint(i.Apart.Unset(ctx, c.Actor), "'jurat apart' shows them")
		case sets:
			return i.Apart.Set(ctx, erasure.Setting{Actor: c.Actor, Pointers: apart.Pointers, Provable: apart.Provable})
		}
		return c.list(ctx, i, std)
	})
}

func (c *apartCmd) list(ctx context.Context, i *installation.Installation, std stdio) error {
	list, err := i.Apart.Settings(ctx)
	list = slices.DeleteFunc(list, func(s erasure.Setting) bool { return c.Actor != "" && s.Actor != c.Actor })
	t := table{heads: []head{{name: "actor"}, {name: "fields", rank: 1}}}
	for _, s := range list {
		t.row(s.Actor, strings.Join(named(&s), " "))
	}
	return c.jsonFlag.list(std, list, err, &t, "")
}

type eraseCmd struct {
	Record        string   `arg:"" help:"The record's id."`
	Field         []string `required:"" help:"The field whose text to destroy: prompt, or /metadata/user_id. May be repeated." placeholder:"POINTER" sep:"none"`
	Reason        string   `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By            newName  `required:"" help:"Which person decided it." placeholder:"WHO"`
	DespiteQuotes bool     `help:"Erase although the text stands in other records, too, where it stays."`
}

func (c *eraseCmd) Run(ctx context.Context, a *app, std stdio) error {
	pointers, err := readPointers("--field", c.Field)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := i.Apart.Erase(ctx, erasure.Order{RecordID: c.Record, Pointers: pointers, Reason: c.Reason, By: string(c.By),
			DespiteQuotes: c.DespiteQuotes, Progress: progress(std, "looked for the text in")})
		if done != nil {
			c.told(std, done)
		}
		switch {
		case is[*erasure.QuotedError](err):
			return hint(err, "erase those first where they are sealed apart, or say --despite-quotes; nothing was erased")
		case errors.Is(err, evidence.ErrNotApart):
			return hint(err, "what may have to be erased is sealed apart at once: 'jurat seal --apart', 'jurat apart'")
		case err != nil:
			return err
		}
		return c.say(std, done)
	})
}

func (c *eraseCmd) told(std stdio, done *erasure.Erased) {
	for _, q := range done.Quotes {
		what := "holds the text"
		switch {
		case q.Reason != "":
			what = "cannot be searched: " + q.Reason
		case q.Part:
			what = "quotes a part of the text"
		}
		std.tell("record %s: %s: %s of %s %q %s", q.RecordID, q.Member, plain(q.Action), q.Role, q.Actor, what)
	}
	for _, pointer := range done.TooShort {
		std.tell("%s: it holds no text of 8 characters or more, so it was not looked for in other records", pointer)
	}
}

func (c *eraseCmd) say(std stdio, done *erasure.Erased) error {
	p := newPrinter(std.out)
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

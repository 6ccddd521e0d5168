package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/jsonform"
	"jurat/evidence/operator"
	"jurat/internal/court/card"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/eutrust"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/web/words"
	"jurat/verify"
	"jurat/verify/trust"
)

type trustCmd struct {
	Own trustOwnCmd `cmd:"" default:"withargs" hidden:"" help:"Print this installation's trust file."`
	EU  trustEUCmd  `cmd:"" name:"eu" help:"Take time-stamping authorities from the European Union's trusted lists into a trust file."`
}

type trustOwnCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Instead, say in words what this trust file means, and on what a pass under it rests."`
	Join  bool     `help:"Join several owners' trust files into one."`
	langFlag
	CA         string          `name:"ca" placeholder:"FILE" help:"Instead, write this CA into a trust file: its certificate, PEM or DER."`
	Name       string          `placeholder:"TEXT" help:"With --ca: the CA's name, for people. Default: the common name in its certificate."`
	Role       []evidence.Role `help:"With --ca: a role it vouches for. May be repeated." enum:"agent,reviewer,submitter,juror,judge,clerk,operator,recorder"`
	Custody    trust.Custody   `help:"With --ca: who keeps the keys that the CA certifies, owner or operator." default:"" enum:",owner,operator"`
	Revocation string          `help:"With --ca: revocation by crl, none, or short: none for certificates of at most a week." default:"crl" enum:"crl,none,short"`
	With       string          `placeholder:"FILE" help:"With --ca: print this trust file with the CA, in the place of what it says of the CA."`
	CAAlone    bool            `name:"ca-alone" help:"With --ca and --with: leave out these roles' keys: the CA alone vouches. Ended and paired keys stay."`
}

func (c *trustOwnCmd) Run(ctx context.Context, a *app, std stdio) error {
	switch {
	case len(c.Files) > 0 && (c.CA != "" || c.With != ""):
		return errors.New("--ca and --with go without a file as argument")
	case c.Join:
		return joinTrust(std, c.Files)
	case len(c.Files) > 1:
		return errors.New("one trust file is explained at a time; --join joins several")
	case len(c.Files) == 1:
		return explainTrust(std, c.Files[0], words.Lang(c.Lang))
	case c.CA != "":
		return c.withCA(std)
	}
	if len(c.Role) > 0 || c.Custody != "" || c.With != "" || c.Name != "" || c.CAAlone {
		return errors.New("--name, --role, --custody, --ca-alone and --with go with --ca FILE")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		file, err := i.Trust(ctx)
		return printTrust(file, err, std)
	})
}

func (c *trustOwnCmd) withCA(std stdio) error {
	if len(c.Role) == 0 || c.Custody == "" {
		return errors.New("--ca: want --role, for whose keys the CA vouches, and --custody owner or operator, for who keeps them")
	}
	certificate, err := readOneCertificate(c.CA)
	if err != nil {
		return err
	}
	ca := trust.CA{Name: cmp.Or(c.Name, certificate.Subject.CommonName, certificate.Subject.String()), Certificate: certificate.Raw, Roles: c.Role,
		Custody: c.Custody, Revocation: trust.Revocation(c.Revocation)}
	file, err := trustWith(c.With)
	if err != nil {
		return err
	}
	file.CAs = append(slices.DeleteFunc(slices.Clone(file.CAs), func(known trust.CA) bool { return bytes.Equal(known.Certificate, ca.Certificate) }), ca)
	listed := c.listed(file)
	if c.CAAlone {
		file.Keys = slices.DeleteFunc(slices.Clone(file.Keys), func(k trust.Key) bool { return slices.Contains(listed, k.KeyID) })
	} else if len(listed) > 0 {
		std.tell("the trust file lists %s of these roles, and believes them even if the CA revokes them: --ca-alone leaves them out.", plural.Of(len(listed), "key"))
	}
	file, err = file.Prepared()
	return printTrust(file, err, std)
}

func trustWith(name string) (*trust.Trust, error) {
	if name == "" {
		return &trust.Trust{Format: trust.Format, Keys: []trust.Key{}, Authorities: []trust.Authority{}, Logs: []string{}}, nil
	}
	return readTrust("--with", name)
}

// listed returns the keys of the CA's roles that the trust file lists and the CA could vouch for in its place. A certificate says neither that
// a key has ended nor that it signs together with others, so keys of which the trust file says so are not among them.
func (c *trustOwnCmd) listed(file *trust.Trust) (ids []evidence.KeyID) {
	var second []evidence.KeyID
	for _, k := range file.Keys {
		second = append(second, k.With...)
	}
	for _, k := range file.Keys {
		ended, pair := !k.NotAfter.IsZero() || !k.Revoked.IsZero(), len(k.With) > 0 || slices.Contains(second, k.KeyID)
		if slices.Contains(c.Role, k.Role) && !ended && !pair {
			ids = append(ids, k.KeyID)
		}
	}
	return ids
}

func printTrust(file *trust.Trust, err error, std stdio) error {
	if err != nil {
		return err
	}
	fingerprint, err := file.Fingerprint()
	if err := std.print(file, err); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.err, "jurat: fingerprint %s\n", fingerprint)
	return err
}

func readOneCertificate(file string) (*x509.Certificate, error) {
	return parsed(file, func(text []byte) (*x509.Certificate, error) {
		if block, rest := pem.Decode(text); block != nil {
			if second, _ := pem.Decode(rest); second != nil || block.Type != "CERTIFICATE" {
				return nil, errors.New("want one certificate in PEM, and nothing else")
			}
			text = block.Bytes
		}
		c, err := x509.ParseCertificate(text)
		fault.While(&err, "want a certificate, PEM or DER")
		return c, err
	})
}

func joinTrust(std stdio, names []string) error {
	if len(names) < 2 {
		return hint(errors.New("one trust file needs no joining"), "jurat trust --join OURS.json THEIRS.json")
	}
	var files []*trust.Trust
	for _, name := range names {
		file, err := readTrust("trust file", name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file)
	}
	all, err := trust.Join(files...)
	return printTrust(all, err, std)
}

type trustEUCmd struct {
	OJ    string `name:"oj" placeholder:"FILE" help:"Certificates from the Official Journal: PEM, or their SHA-256, one a line. Get them from the Journal itself."`
	Lists string `required:"" placeholder:"DIR" help:"The folder of trusted lists, which keeps each version of a list."`
	Fetch bool   `xor:"what" help:"Fetch the lists into the folder first."`
	From  string `placeholder:"URL" help:"With --fetch: where the list of the lists is, if not where the EU publishes it."`

	Territory    []string  `placeholder:"XX" help:"Take services of this territory alone, such as BE. May be repeated."`
	GrantedSince time.Time `placeholder:"TIME" help:"Take only services that were qualified then or later (RFC 3339). Left out: all that ever were."`
	With         string    `placeholder:"FILE" help:"Print this trust file with what the lists say. What was taken from lists before is replaced."`
	Check        string    `xor:"what" placeholder:"FILE" help:"Print nothing: compare this trust file with the lists."`
}

func (c *trustEUCmd) Run(ctx context.Context, std stdio) error {
	if c.Check != "" {
		return c.check(std)
	}
	if c.OJ == "" {
		return errors.New("--oj: no file has the certificates of the Official Journal")
	}
	file, err := trustWith(c.With)
	if err != nil {
		return err
	}
	journal, err := parsed(c.OJ, eutrust.Journal)
	if err != nil {
		return err
	}
	if c.Fetch {
		if err := c.fetch(ctx, std, journal); err != nil {
			return err
		}
	}
	derived, err := c.derive(eutrust.Options{Journal: journal, Territories: c.Territory, GrantedSince: c.GrantedSince.UTC()}, std)
	if err != nil {
		return err
	}
	derived.Into(file)
	return printTrust(file, nil, std)
}

func (c *trustEUCmd) derive(options eutrust.Options, std stdio) (*eutrust.Derived, error) {
	files, err := eutrust.Read(os.DirFS(c.Lists))
	if err != nil {
		return nil, err
	}
	derived, err := files.Derive(options)
	if err != nil {
		return nil, err
	}
	derived.Notes = append(derived.Notes, derived.Overdue(time.Now())...)
	return derived, tellAll(std, "", derived.Notes)
}

func tellAll(std stdio, name string, list []string) error {
	for _, text := range list {
		if _, err := fmt.Fprintf(std.err, "jurat: %s%s\n", name, oneLine(errors.New(text))); err != nil {
			return err
		}
	}
	return nil
}

// check derives again what a trust file says that it was derived from.
func (c *trustEUCmd) check(std stdio) error {
	file, err := readTrust("--check", c.Check)
	if err != nil {
		return err
	}
	if file.Lists == nil {
		return fmt.Errorf("%s: nothing in it was taken from trusted lists", c.Check)
	}
	options := eutrust.Options{Territories: file.Lists.Territories, GrantedSince: file.Lists.GrantedSince}
	for _, digest := range file.Lists.Journal {
		options.Journal = append(options.Journal, digest)
	}
	if err := c.sameJournal(file.Lists.Journal); err != nil {
		return err
	}
	derived, err := c.derive(options, std)
	if err != nil {
		return err
	}
	if differences := derived.Check(file); len(differences) > 0 {
		return closing(exitCode(exitBad), tellAll(std, c.Check+": ", differences))
	}
	return std.line("%s: the lists say the same", c.Check)
}

// sameJournal compares the certificates that the trust file began with to those that the reader has, if any.
func (c *trustEUCmd) sameJournal(said []evidence.Digest) error {
	if c.OJ == "" {
		return nil
	}
	journal, err := parsed(c.OJ, eutrust.Journal)
	if err != nil {
		return err
	}
	for _, digest := range said {
		if !slices.Contains(journal, [sha256.Size]byte(digest)) {
			return fmt.Errorf("%s begins with a certificate that is not in %s: %s", c.Check, c.OJ, digest)
		}
	}
	return nil
}

func (c *trustEUCmd) fetch(ctx context.Context, std stdio, journal [][sha256.Size]byte) error {
	fetcher := eutrust.Fetcher{Journal: journal, Folder: c.Lists, ListOfLists: c.From, Territories: c.Territory,
		Note: func(text string) { fmt.Fprintf(std.err, "jurat: %s\n", strings.ToValidUTF8(text, "?")) }}
	return fetcher.Fetch(ctx)
}

func explainTrust(std stdio, name string, lang words.Lang) error {
	file, err := readTrust("trust file", name)
	if err != nil {
		return err
	}
	fingerprint, err := file.Fingerprint()
	if err != nil {
		return err
	}
	e := explainer{newPrinter(std.out), lang}
	e.p.line("%s: %s", e.p.bold(name), fingerprint)
	for i := range file.Keys {
		e.key(&file.Keys[i])
	}
	for i := range file.CAs {
		e.ca(&file.CAs[i])
	}
	for i := range file.Authorities {
		e.authority(&file.Authorities[i])
	}
	e.log(file)
	e.rests(file)
	return e.p.err
}

type explainer struct {
	p    *printer
	lang words.Lang
}

func (e *explainer) say(indent, key string, pairs ...any) { e.sayIf(true, indent, key, pairs...) }

func (e *explainer) sayIf(applies bool, indent, key string, pairs ...any) {
	if applies {
		e.p.text(indent, inert(words.Of(e.lang).Say(key, pairs...)))
	}
}

func (e *explainer) key(k *trust.Key) {
	e.p.text("  ", inert(words.Identified(e.lang, k.Identified())))
	e.p.line("    %s", k.KeyID)
	e.sayIf(!k.NotAfter.IsZero(), "    ", "trust.key_ends", "time", evidence.FormatTime(k.NotAfter))
	e.sayIf(!k.Revoked.IsZero(), "    ", "trust.key_revoked", "time", evidence.FormatTime(k.Revoked))
	for _, with := range k.With {
		e.say("    ", "trust.key_with", "key", with)
	}
}

func (e *explainer) ca(ca *trust.CA) {
	roles := joined(ca.Roles, ", ", func(r evidence.Role) string { return words.Of(e.lang).Say("role." + string(r)) })
	e.say("  ", "trust.ca", "ca", ca.Name, "roles", roles)
	e.say("    ", "trust.ca."+string(ca.Custody))
	e.say("    ", pick(!ca.Asked(), "trust.unasked", pick(ca.Revocation == trust.ShortLived, "trust.short", "trust.asked")))
}

func (e *explainer) authority(a *trust.Authority) {
	e.say("  ", "trust.authority."+string(a.Clock), "authority", a.Name)
	for _, s := range a.Services {
		e.say("    ", "trust.listed", "territory", s.Territory, "sequence", s.List.Sequence, "issued", s.List.Issued.Format(time.DateOnly), "tsp", s.TSP[0])
	}
	e.sayIf(!a.NotAfter.IsZero(), "    ", "trust.ends", "time", evidence.FormatTime(a.NotAfter))
	e.say("    ", pick(a.Asked(), "trust.asked", "trust.unasked"))
}

func (e *explainer) log(file *trust.Trust) {
	for _, log := range file.Logs {
		name, _, _ := strings.Cut(log, "+")
		e.say("  ", "trust.log", "log", name)
	}
	switch {
	case len(file.Logs) == 0:
		e.say("  ", "trust.no_log")
	case len(file.Witnesses) == 0:
		e.say("    ", "trust.no_witness")
	default:
		e.say("    ", "trust.witnesses", "quorum", file.Quorum, "count", len(file.Witnesses))
	}
}

func (e *explainer) rests(file *trust.Trust) {
	owners := count(file.Keys, func(k trust.Key) bool { return k.Custody == trust.ByOwner })
	independent := count(file.Authorities, func(a trust.Authority) bool { return a.Clock == trust.Independent })
	e.say("", "trust.rests")
	for i, of := range []string{"trust.rests_owners", "trust.rests_operator", "trust.rests_cas", "trust.rests_independent"} {
		n := []int{owners, len(file.Keys) - owners, len(file.CAs), independent}[i]
		e.sayIf(n > 0, "  ", of, "count", n)
	}
	e.sayIf(len(file.Authorities) == 0, "  ", "trust.rests_not")
	e.sayIf(len(file.Authorities) > 0 && independent == 0, "  ", "trust.rests_operator_clock")
}

func readCard(stdin io.Reader, file string) (*card.Card, error) {
	doc, err := readAtMost(stdin, file, card.MaxSize)
	if err != nil {
		return nil, err
	}
	read, err := card.Parse(doc)
	fault.While(&err, "%s", file)
	return read, err
}

// readAtMost reads a file, or standard input for "-", without a byte order mark. It stops one byte after the limit, so that callers see what is larger.
func readAtMost(stdin io.Reader, file string, most int64) ([]byte, error) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		stdin = opened
	}
	doc, err := io.ReadAll(io.LimitReader(stdin, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return jsonform.CutMark(doc), nil
}

type cardCmd struct {
	Card   string    `arg:"" help:"The card in JSON; - is standard input."`
	Trust  string    `help:"Your trust file. Without one nothing can be proved." placeholder:"FILE"`
	At     time.Time `help:"The moment of checking (RFC 3339). Left out: now." placeholder:"TIME"`
	Events string    `placeholder:"FILE" help:"The log's key events ('jurat log prove operator-keys'): do they name this card for the key that the card names?"`
	jsonFlag

	Of   string        `placeholder:"NAME" help:"Check nothing, and log that the card, signed or not, belongs to this actor's key."`
	Role evidence.Role `help:"With --of: agent or reviewer." default:"agent" enum:"agent,reviewer"`
	whenWhyFlags
}

func (c *cardCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.Of != "" {
		return c.log(ctx, a, std)
	}
	if c.Reason != "" || c.By != "" {
		return errors.New("--reason and --by go with --of")
	}
	read, err := readCard(std.in, c.Card)
	if err != nil {
		return err
	}
	reader := card.Reader{At: cmp.Or(c.At, time.Now())}
	if c.Trust != "" {
		if reader.Trust, err = readTrust("--trust", c.Trust); err != nil {
			return err
		}
	}
	if c.Events != "" {
		if reader.Events, err = c.events(reader); err != nil {
			return fmt.Errorf("%s: %w", c.Events, err)
		}
	}
	found, err := read.Verify(reader)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Card, err)
	}
	if err := c.answer(std, found, nil, func(p *printer) { p.card(c.Card, found) }); err != nil {
		return err
	}
	std.tellIf(c.Trust == "", "hint: nothing can be proved without --trust FILE; the log's operator writes one with 'jurat trust'")
	return coded(codeOf(found.Outcome))
}

func (c *cardCmd) events(r card.Reader) (*card.Events, error) {
	doc, err := readFile(c.Events)
	if err != nil {
		return nil, err
	}
	report, err := verify.File(doc, verify.Options{Trust: r.Trust, At: r.At})
	if err != nil {
		return nil, err
	}
	events := &card.Events{Report: report}
	records, err := openRecords(doc)
	if err != nil {
		return events, nil // the report says that it is damaged
	}
	for _, record := range records {
		if record.Payload.ActionType == evidence.KeyEvent && record.Payload.ChainID == operator.KeysChain {
			events.Chain = append(events.Chain, record)
		}
	}
	return events, nil
}

func (p *printer) card(file string, r *card.Report) {
	p.line("%s: an agent card, %s", p.bold(file), r.Digest)
	p.textIf(len(r.Signatures) == 0, "  ", "It has no signature.")
	for i, s := range r.Signatures {
		p.finding("  ", words.Line{Status: s.Status, Guarantee: verify.Guarantee(fmt.Sprintf("signature %d", i+1)), Reason: s.Reason})
		p.textIf(s.JKU != "", "    ", "It says where its key is to be found (%s). jurat did not follow it, because the author of the card wrote it.", inert(s.JKU))
	}
	for i, f := range []*card.Finding{r.Binding, r.Log} {
		if f != nil {
			p.finding("  ", words.Line{Status: f.Status, Guarantee: []verify.Guarantee{"its key", "the log"}[i], Reason: f.Reason})
		}
	}
	p.text("  ", "None of this proves "+strings.Join(r.NotShown, ", or ")+".")
	p.textIf(r.Trust != "", "  ", "All this rests on the trust file %s. Compare this fingerprint with its giver's, over another channel.", r.Trust)
	p.line("  %s", p.statusIn(r.Outcome, strings.ToUpper(string(r.Outcome))))
}

func (c *cardCmd) log(ctx context.Context, a *app, std stdio) error {
	if c.Trust != "" || !c.At.IsZero() || c.Events != "" || c.JSON {
		return errors.New("--trust, --at, --events and --json do not go with --of")
	}
	read, digest, err := cardAndDigest(std, c.Card)
	if err != nil {
		return err
	}
	fits := func(id evidence.KeyID) error {
		err := read.Clashes(c.Role, c.Of, id)
		fault.While(&err, "%s", c.Card)
		return err
	}
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
		return std.lineUnless(i.Keys.SetCard(ctx, c.Role, c.Of, fits, digest, why), "%s", digest)
	})
}

func cardAndDigest(std stdio, file string) (*card.Card, evidence.Digest, error) {
	read, err := readCard(std.in, file)
	if err != nil {
		return nil, evidence.Digest{}, err
	}
	digest, err := read.Digest()
	fault.While(&err, "%s", file)
	return read, digest, err
}

// addCard gives the card in a file to the first of an actor's keys, if a file is named.
func addCard(std stdio, file string, role evidence.Role, name string, owned []keys.OwnerKey) error {
	if file == "" {
		return nil
	}
	read, digest, err := cardAndDigest(std, file)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(owned, func(k keys.OwnerKey) bool {
		public, err := evidence.ParsePublicKey(k.Public)
		algorithm, unknown := evidence.AlgorithmOf(public)
		return err == nil && unknown == nil && !algorithm.PostQuantum()
	})
	if i < 0 {
		return errors.New("--card belongs to a key of ES256, RS256 or Ed25519, and none is given")
	}
	owned[i].Card, err = digest, read.Clashes(role, name, evidence.DigestOf(owned[i].Public))
	fault.While(&err, "%s", file)
	return err
}

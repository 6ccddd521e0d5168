package main

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/atomicfile"
	"jurat/internal/ca"
	"jurat/internal/card"
	"jurat/internal/fault"
	"jurat/internal/installation"
	"jurat/internal/jsonform"
	"jurat/internal/keys"
	"jurat/internal/lock"
	"jurat/internal/token"
	"jurat/verify"
)

func readCard(stdin io.Reader, file string) (*card.Card, error) {
	doc, err := readAtMost(stdin, file, card.MaxSize)
	if err != nil {
		return nil, err
	}
	read, err := card.Parse(doc)
	fault.While(&err, "%s", file)
	return read, err
}

// readAtMost reads a file, or standard input for "-", without a byte order mark. It stops one byte after the size that is the most, so that what is larger is seen to be.
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

func (c *cardCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Of != "" {
		return c.log(ctx, a, io)
	}
	if c.Reason != "" || c.By != "" {
		return errors.New("--reason and --by go with --of")
	}
	read, err := readCard(io.in, c.Card)
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
	if err := c.answer(io, found, func(p *printer) { p.card(c.Card, found) }); err != nil {
		return err
	}
	io.tellIf(c.Trust == "", "hint: nothing can be proved without --trust FILE; the operator who keeps the log writes one with 'jurat trust'")
	return coded(codeOfStatus(found.Outcome))
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
		p.finding("  ", verify.Group{Finding: verify.Finding{Status: s.Status, Guarantee: verify.Guarantee(fmt.Sprintf("signature %d", i+1)), Reason: s.Reason}})
		p.textIf(s.JKU != "", "    ", "It says where its key is to be found (%s). jurat did not follow it, because the author of the card wrote it.", inert(s.JKU))
	}
	for i, f := range []*card.Finding{r.Binding, r.Log} {
		if f != nil {
			p.finding("  ", verify.Group{Finding: verify.Finding{Status: f.Status, Guarantee: []verify.Guarantee{"its key", "the log"}[i], Reason: f.Reason}})
		}
	}
	p.text("  ", "None of this proves "+strings.Join(r.NotShown, ", or ")+".")
	p.textIf(r.Trust != "", "  ", "All this rests on the trust file %s. Compare this fingerprint with its giver's, over another channel.", r.Trust)
	p.line("  %s", p.statusIn(r.Outcome, strings.ToUpper(string(r.Outcome))))
}

func (c *cardCmd) log(ctx context.Context, a *app, io stdio) error {
	if c.Trust != "" || !c.At.IsZero() || c.Events != "" || c.JSON {
		return errors.New("--trust, --at, --events and --json do not go with --of")
	}
	read, digest, err := cardAndDigest(io, c.Card)
	if err != nil {
		return err
	}
	why, err := c.why()
	if err != nil {
		return err
	}
	fits := func(id evidence.KeyID) error {
		err := read.Clashes(c.Role, c.Of, id)
		fault.While(&err, "%s", c.Card)
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		if err := i.Keys.SetCard(ctx, c.Role, c.Of, fits, digest, why); err != nil {
			return changeHint(err)
		}
		return io.line("%s", digest)
	})
}

func cardAndDigest(io stdio, file string) (*card.Card, evidence.Digest, error) {
	read, err := readCard(io.in, file)
	if err != nil {
		return nil, evidence.Digest{}, err
	}
	digest, err := read.Digest()
	fault.While(&err, "%s", file)
	return read, digest, err
}

// addCard gives the card in a file to the first of an actor's keys, if a file is named.
func addCard(io stdio, file string, role evidence.Role, name string, owned []keys.OwnerKey) error {
	if file == "" {
		return nil
	}
	read, digest, err := cardAndDigest(io, file)
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

type caCmd struct {
	Init   caInitCmd   `cmd:"" help:"Make a CA: its key and its certificate."`
	Issue  caIssueCmd  `cmd:"" help:"Issue the certificate that a request asks for."`
	Revoke caRevokeCmd `cmd:"" help:"Revoke a certificate."`
	CRL    caCRLCmd    `cmd:"" name:"crl" help:"Print a new revocation list."`
}

type caFlags struct {
	CA string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder."`
}

func (f *caFlags) with(ctx context.Context, do func(authority *ca.CA) error) error {
	helper := &token.Helper{}
	defer helper.Close()
	authority, err := ca.Open(ctx, ca.Config{Dir: f.CA, Helper: helper})
	if err == nil {
		err = do(authority)
	}
	return hintIf(lock.ErrTaken, err, "another process acts in this folder; try again")
}

type caInitCmd struct {
	caFlags
	Name  string `required:"" help:"The CA's name, as readers see it: that of the organisation that vouches for the keys."`
	Token string `placeholder:"URI" help:"Its key on a token: pkcs11:token=LABEL;object=NAME. It is made if it is not there."`
	helperFlag
	Years int `help:"How many years it lasts." default:"10"`
}

func (c *caInitCmd) Run(ctx context.Context, io stdio) error {
	helper := &token.Helper{}
	defer helper.Close()
	on, err := c.find(ctx, helper, c.Token, evidence.ES256)
	if err != nil {
		return err
	}
	if _, err := ca.Create(ctx, ca.Config{Dir: c.CA, Helper: helper}, ca.Plan{Name: c.Name, On: on, Years: c.Years}); err != nil {
		return err
	}
	return io.line("%s", filepath.Join(c.CA, ca.Certificate))
}

type caIssueCmd struct {
	caFlags
	Request string `arg:"" optional:"" default:"-" help:"A certificate request (PKCS #10), PEM or DER; - is standard input."`
	Days    int    `help:"How long it is valid." default:"30"`
}

func (c *caIssueCmd) Run(ctx context.Context, io stdio) error {
	doc, err := readInput(io.in, c.Request)
	if err != nil {
		return err
	}
	request, err := ca.ParseRequest(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing request: %w", err), "'jurat ca issue --help' shows how OpenSSL makes one; nothing was issued")
	}
	return c.with(ctx, func(authority *ca.CA) error {
		made, err := authority.Issue(ctx, request, c.Days)
		if err != nil {
			return err
		}
		return io.document(ca.PEM(made))
	})
}

type caRevokeCmd struct {
	caFlags
	Certificate string    `arg:"" help:"The certificate; the CA's folder has those that it issued."`
	Cause       ca.Cause  `required:"" help:"keyCompromise, affiliationChanged, superseded, cessationOfOperation, privilegeWithdrawn or unspecified." enum:"keyCompromise,affiliationChanged,superseded,cessationOfOperation,privilegeWithdrawn,unspecified"`
	InvalidFrom time.Time `help:"When others may first have had the key (RFC 3339). Default: nothing is said, and now counts."`
}

func (c *caRevokeCmd) Run(ctx context.Context, io stdio) error {
	certificate, err := readOneCertificate(c.Certificate)
	if err != nil {
		return err
	}
	return c.with(ctx, func(authority *ca.CA) error {
		if err := authority.Revoke(ctx, certificate, c.Cause, c.InvalidFrom); err != nil {
			return err
		}
		return io.line("revoked: 'jurat ca crl' makes the list that says so")
	})
}

type caCRLCmd struct {
	caFlags
	Out string `short:"o" placeholder:"FILE" help:"Write it there, in the place of what is there."`
}

func (c *caCRLCmd) Run(ctx context.Context, io stdio) error {
	return c.with(ctx, func(authority *ca.CA) error {
		der, err := authority.List(ctx)
		if err != nil {
			return err
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
		if c.Out != "" {
			return atomicfile.Replace(c.Out, text, 0o644)
		}
		return io.document(text)
	})
}

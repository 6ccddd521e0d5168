package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/eutrust"
	"jurat/internal/installation"
	"jurat/internal/mandate"
	"jurat/timestamp"
	"jurat/trustlist"
	"jurat/verify"
	"jurat/verify/trust"
)

type mandateCmd struct {
	Sign  mandateSignCmd  `cmd:"" help:"As an organisation: sign that a CA may certify keys of agents, with the key of your seal."`
	Stamp mandateStampCmd `cmd:"" help:"Add a time stamp to a signed mandate."`
	Check mandateCheckCmd `cmd:"" help:"Check a mandate by trusted lists of the European Union, offline."`
	Seal  mandateSealCmd  `cmd:"" help:"Keep a signed mandate in the installation, and log it."`
	Show  mandateShowCmd  `cmd:"" help:"Print a mandate that the installation keeps."`
}

// Help is shown by 'jurat mandate --help'.
func (*mandateCmd) Help() string {
	return `No provider issues qualified certificates for agents. So an organisation says once, under its qualified seal, that a CA may certify keys
of agents: that is a mandate. One seal counts for all agents that the CA certifies, within the roles, names and times of the mandate.

    jurat mandate sign --ca ca.pem --role agent --from 2026-01-01 --to 2027-01-01 --certificate seal.pem --key seal.key > mandate.json
    jurat mandate stamp mandate.json > stamped.json
    jurat mandate seal stamped.json --by Ann --reason "the board's decision"
    jurat mandate check stamped.json --trust trust.json --oj oj.pem --lists lists --crl seal-ca.crl
    jurat trust --ca ca.pem --role agent --custody owner --mandate stamped.json --oj oj.pem --lists lists --crl seal-ca.crl --with trust.json`
}

type mandateSignCmd struct {
	CA          string          `required:"" name:"ca" placeholder:"FILE" help:"The CA's certificate, PEM or DER."`
	Role        []evidence.Role `required:"" help:"A role for which the CA may certify keys. May be given several times." enum:"agent,reviewer,submitter,juror,judge,clerk,operator,recorder"`
	Name        []string        `placeholder:"NAME" help:"An actor whose keys the CA may certify. May be given several times. Left out: every name."`
	From        time.Time       `required:"" placeholder:"DATE" format:"2006-01-02" help:"The first day (UTC)."`
	To          time.Time       `required:"" placeholder:"DATE" format:"2006-01-02" help:"The day on which it ends (UTC), itself left out."`
	Log         string          `placeholder:"VKEY" help:"Only for records in this log: its verifier key, as trust files have it."`
	Certificate []string        `required:"" placeholder:"FILE" help:"Certificates in PEM: the seal's, then those above it."`
	Key         string          `placeholder:"FILE" help:"The private key of the seal: PKCS #8 in PEM."`
	Token       string          `placeholder:"URI" help:"The private key of the seal on a token: pkcs11:token=LABEL;object=NAME."`
	helperFlag
	Prepare   bool   `help:"Only print the bytes that the seal's key has to sign."`
	Signature string `placeholder:"FILE" help:"The signature over what --prepare printed, as OpenSSL writes it."`
}

// Help is shown by 'jurat mandate sign --help'.
func (*mandateSignCmd) Help() string {
	return `Prints the signed mandate: a JWS (RFC 7515) with the certificates of the seal. Where a provider keeps the key of the seal:

    jurat mandate sign ... --certificate seal.pem --prepare > input.txt
    openssl dgst -sha256 -sign seal.key -out signature.bin input.txt
    jurat mandate sign ... --certificate seal.pem --signature signature.bin > mandate.json

A mandate counts only with a time stamp by an authority with an independent clock: 'jurat mandate stamp'.`
}

// Run signs a mandate.
func (c *mandateSignCmd) Run(ctx context.Context, a *app, io stdio) error {
	given := 0
	for _, set := range []bool{c.Key != "", c.Token != "", c.Prepare, c.Signature != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return errors.New("want one of --key, --token, --prepare and --signature")
	}
	ca, err := readOneCertificate(c.CA)
	if err != nil {
		return err
	}
	chain, err := parseCertificates(c.Certificate)
	if err != nil {
		return err
	}
	slices.Sort(c.Role)
	slices.Sort(c.Name)
	m := mandate.Mandate{Format: mandate.Format, CA: evidence.DigestOf(ca.RawSubjectPublicKeyInfo), Roles: c.Role, Names: c.Name, From: c.From.UTC(), To: c.To.UTC(), Log: c.Log}
	if c.Prepare {
		input, err := mandate.Input(m, chain)
		if err != nil {
			return err
		}
		return io.document(input)
	}
	if c.Signature != "" {
		signature, err := readFile(c.Signature)
		if err != nil {
			return err
		}
		signed, err := mandate.Assemble(m, chain, signature)
		if err != nil {
			return err
		}
		return io.print(signed)
	}
	flags := signerFlags{Key: c.Key, Token: c.Token, helperFlag: c.helperFlag}
	return flags.signing(ctx, a, func(key evidence.Signer) error {
		signed, err := mandate.Sign(m, chain, key)
		if err != nil {
			return err
		}
		return io.print(signed)
	})
}

// readOneCertificate reads a certificate, PEM or DER.
func readOneCertificate(file string) (*x509.Certificate, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	if block, rest := pem.Decode(text); block != nil {
		if second, _ := pem.Decode(rest); second != nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: want one certificate in PEM, and nothing else", file)
		}
		text = block.Bytes
	}
	c, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: want a certificate, PEM or DER: %w", file, err)
	}
	return c, nil
}

func parseCertificates(files []string) (list []*x509.Certificate, err error) {
	ders, err := readCertificates(files)
	if err != nil {
		return nil, err
	}
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", strings.Join(files, ", "), i+1, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// readMandate reads a mandate from a file, or from standard input for "-".
func readMandate(io stdio, file string) (*mandate.File, error) {
	doc, err := readAtMost(io.in, file, mandate.MaxSize)
	if err != nil {
		return nil, err
	}
	f, err := mandate.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}

type mandateStampCmd struct {
	File     string `arg:"" help:"A signed mandate; - is standard input."`
	Request  bool   `help:"Only print the request for a time-stamping authority (RFC 3161)."`
	Response string `placeholder:"FILE" help:"The authority's response to that request. Left out: the authorities of the installation are asked."`
}

// Help is shown by 'jurat mandate stamp --help'.
func (*mandateStampCmd) Help() string {
	return `Prints the mandate with a time stamp over its signature, of each authority of the installation, or of one that you ask yourself:

    jurat mandate stamp mandate.json --request > request.tsq
    curl -H "Content-Type: application/timestamp-query" --data-binary @request.tsq https://tsa.example/ > response.tsr
    jurat mandate stamp mandate.json --response response.tsr > stamped.json`
}

// Run stamps a mandate.
func (c *mandateStampCmd) Run(ctx context.Context, a *app, io stdio) error {
	f, err := readMandate(io, c.File)
	if err != nil {
		return err
	}
	switch {
	case c.Request && c.Response != "":
		return errors.New("--request and --response exclude each other")
	case c.Request:
		der, err := (&timestamp.Request{Imprint: f.Imprint(), CertReq: true}).Marshal()
		if err != nil {
			return err
		}
		return io.document(der)
	case c.Response != "":
		token, err := responseFor(c.Response, f.Imprint())
		if err != nil {
			return fmt.Errorf("%s: %w", c.Response, err)
		}
		f.Tokens = append(f.Tokens, token)
		return io.print(f)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		stamped, err := i.Timekeeper.Stampers.Stamp(ctx, f.Imprint())
		if err != nil {
			return err
		}
		for _, m := range stamped.Missing {
			fmt.Fprintf(io.err, "jurat: %s gave no time stamp: %s\n", m.Authority, oneLine(m.Reason))
		}
		if len(stamped.Tokens) == 0 {
			return hint(errors.New("no authority gave a time stamp"), "'jurat tsa list' shows the authorities; --request and --response ask another by hand")
		}
		f.Tokens = append(f.Tokens, stamped.Tokens...)
		return io.print(f)
	})
}

// responseFor reads an authority's response, and refuses a token over something else.
func responseFor(file string, imprint [sha256.Size]byte) ([]byte, error) {
	der, err := readFile(file)
	if err != nil {
		return nil, err
	}
	token, err := timestamp.ParseResponse(der)
	if err != nil {
		return nil, err
	}
	unverified, err := timestamp.Parse(token)
	if err != nil {
		return nil, err
	}
	if _, err := unverified.Verify(imprint, timestamp.Options{Roots: []*x509.Certificate{}}); err != nil && !trust.Uncheckable(err) {
		return nil, fmt.Errorf("the time stamp is not of this mandate: %w", err)
	}
	return token, nil
}

// mandateFlags say by what a mandate is checked.
type mandateFlags struct {
	OJ      string `name:"oj" placeholder:"FILE" help:"The certificates that the Official Journal publishes, in PEM, or their SHA-256, one a line. Get them from the Journal itself."`
	Lists   string `placeholder:"DIR" help:"The folder of trusted lists: 'jurat lists fetch' fills one."`
	Unasked bool   `name:"seal-revocation-unasked" help:"Do not ask whether the certificate of the seal was revoked. Otherwise --crl has to give the lists of its CAs."`
}

// grounds reads what a mandate is checked by.
func (f *mandateFlags) grounds(io stdio, o verify.Options) (mandate.Grounds, error) {
	if f.OJ == "" || f.Lists == "" {
		return mandate.Grounds{}, errors.New("a mandate is checked by trusted lists: want --oj FILE and --lists DIR")
	}
	if o.Trust == nil {
		return mandate.Grounds{}, hint(errors.New("the mandate's time is proved by authorities of a trust file, and none is given"), "'jurat trust eu' makes one of the European Union's lists")
	}
	journal, err := readJournal(f.OJ)
	if err != nil {
		return mandate.Grounds{}, err
	}
	lists, err := verifiedLists(io, f.Lists, journal)
	if err != nil {
		return mandate.Grounds{}, err
	}
	return mandate.Grounds{Trust: o.Trust, Lists: lists, Journal: journal, At: o.At, CRLs: o.CRLs, Unasked: f.Unasked}, nil
}

// verifiedLists reads a folder of lists, and says on stderr which of them do not hold.
func verifiedLists(io stdio, folder string, journal trustlist.Signers) (*eutrust.Verified, error) {
	files, err := eutrust.Read(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	lists, err := files.Verify(eutrust.Options{Journal: journal})
	if err != nil {
		return nil, err
	}
	for _, note := range lists.Notes {
		if _, err := fmt.Fprintf(io.err, "jurat: %s\n", oneLine(errors.New(note))); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

type mandateCheckCmd struct {
	File string `arg:"" help:"A signed mandate; - is standard input."`
	readerFlags
	mandateFlags
	JSON bool `name:"json" help:"Print what the mandate says as JSON, as a trust file has it."`
}

// Help is shown by 'jurat mandate check --help'.
func (*mandateCheckCmd) Help() string {
	return `Says whether an organisation's qualified seal is over the mandate: the certificate of the seal comes from a service that the trusted list
of its country shows as qualified for seals, both when the certificate began and when the mandate is proved to have existed. An authority of your trust
file with an independent clock has to prove that time. Nothing is fetched.

Exit code 0: it holds. 1: it is refuted. 3: it is not proved. 2: it could not be read.`
}

// Run checks a mandate.
func (c *mandateCheckCmd) Run(io stdio) error {
	f, err := readMandate(io, c.File)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	grounds, err := c.grounds(io, o)
	if err != nil {
		return err
	}
	made, err := f.Check(grounds)
	var finding *mandate.Finding
	if err != nil && !errors.As(err, &finding) {
		return err
	}
	if c.JSON {
		if finding != nil {
			err = io.json(finding)
		} else {
			err = io.json(made)
		}
	} else {
		err = printMandate(io, c.File, f, made, finding)
	}
	if err != nil {
		return err
	}
	if finding != nil {
		return codeOfStatus(finding.Status)
	}
	return nil
}

func printMandate(io stdio, file string, f *mandate.File, made *trust.Mandate, finding *mandate.Finding) error {
	p := newPrinter(io.out)
	p.line("%s: a mandate for the CA with the key %s", p.bold(file), f.Mandate.CA)
	p.text("  ", scopeOf(f.Mandate.Roles, f.Mandate.Names, f.Mandate.From, f.Mandate.To))
	status := verify.Proved
	if finding != nil {
		status = finding.Status
		p.text("  ", inert(finding.Reason))
	} else {
		p.text("  ", fmt.Sprintf("Sealed by %s (%s%s) with its qualified seal, by %s.", inert(made.Organisation), inert(made.Country), inert(withComma(made.Identifier)), evidence.FormatTime(made.At)))
		p.text("  ", fmt.Sprintf("The list %s %d of %s shows that %s was qualified to issue its certificate.", made.Service.Territory, made.Service.List.Sequence,
			made.Service.List.Issued.Format(time.DateOnly), inert(made.Service.TSP)))
	}
	p.line("  %s", p.statusIn(status, strings.ToUpper(string(status))))
	return p.err
}

func withComma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

// scopeOf says for whom and when a mandate counts.
func scopeOf(roles []evidence.Role, names []string, from, to time.Time) string {
	who := "every name"
	if len(names) > 0 {
		who = shortList(names)
	}
	return inert(fmt.Sprintf("For the roles %v and %s, from %s to %s.", roles, who, evidence.FormatTime(from), evidence.FormatTime(to)))
}

type mandateSealCmd struct {
	File string `arg:"" help:"A signed mandate; - is standard input."`
	decidedFlags
}

// Help is shown by 'jurat mandate seal --help'.
func (*mandateSealCmd) Help() string {
	return `Keeps the file in the installation, and logs its digest and what it says, so that people can show later since when it was there.
What the mandate is worth is for each reader to check: 'jurat mandate check'.

    jurat mandate seal stamped.json --by Ann --reason "the board's decision"
    jurat mandate show sha256:... > stamped.json`
}

// Run seals a mandate.
func (c *mandateSealCmd) Run(ctx context.Context, a *app, io stdio) error {
	f, err := readMandate(io, c.File)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		digest, err := keeperOf(i).Seal(ctx, f, string(c.By), c.Reason)
		if err != nil {
			return err
		}
		return io.line("%s", digest)
	})
}

func keeperOf(i *installation.Installation) *mandate.Keeper {
	return &mandate.Keeper{Files: i.Timekeeper.Files, Operator: i.Timekeeper.Operator}
}

type mandateShowCmd struct {
	Digest string `arg:"" help:"The mandate's digest, as 'jurat mandate seal' printed it."`
}

// Run prints a mandate.
func (c *mandateShowCmd) Run(ctx context.Context, a *app, io stdio) error {
	digest, err := evidence.ParseDigest(c.Digest)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		doc, err := keeperOf(i).Show(ctx, digest)
		if errors.Is(err, os.ErrNotExist) {
			return hint(err, "'jurat log case operator-mandates' shows which mandates were sealed")
		}
		if err != nil {
			return err
		}
		return io.document(doc)
	})
}

package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/ca"
	"jurat/internal/certlog"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/plural"
	"jurat/internal/token"
)

type caCmd struct {
	Init    caInitCmd    `cmd:"" help:"Make a CA: its key, its certificate and its first list."`
	Issue   caIssueCmd   `cmd:"" help:"Issue the certificate that a request asks for."`
	Renew   caRenewCmd   `cmd:"" help:"Renew certificates: those whose time has come, or those that are named."`
	Revoke  caRevokeCmd  `cmd:"" help:"Revoke certificates, and make the list that says so."`
	List    caListCmd    `cmd:"" default:"withargs" help:"List the certificates that the CA issued, and what became of them."`
	Show    caShowCmd    `cmd:"" help:"Print a certificate in PEM: the CA's own, or one that it issued."`
	CRL     caCRLCmd     `cmd:"" name:"crl" help:"Print the revocation list in force. One that is older than a day is made anew."`
	OCSP    caOCSPCmd    `cmd:"" name:"ocsp" help:"Write an OCSP response about one certificate."`
	Publish caPublishCmd `cmd:"" help:"Carry into the log what the CA did offline."`
}

const defaultData = "./jurat-data"

// caFlags name a CA, and say whether its acts are sealed at once.
type caFlags struct {
	CA      string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder."`
	Offline bool   `help:"Seal nothing now; 'jurat ca publish' carries it into a log later."`
}

const sealedAtOnce = `

If there is an installation in the data folder (--data, --db), this is sealed in its log at once. Otherwise, and with --offline, it is only
in the CA's folder, and 'jurat ca publish' carries it into a log later.`

// with opens the CA, and the installation if there is one; i is nil without one.
func (f *caFlags) with(ctx context.Context, a *app, io stdio, do func(authority *ca.CA, i *installation.Installation) error) (err error) {
	helper := &token.Helper{}
	defer helper.Close()
	authority, err := ca.Open(ctx, ca.Config{Dir: f.CA, Helper: helper})
	if err != nil {
		return caHint(err)
	}
	if f.Offline {
		return caHint(do(authority, nil))
	}
	err = a.with(ctx, func(i *installation.Installation) error { return caHint(do(authority, i)) })
	if errors.Is(err, installation.ErrNone) && a.Data == defaultData && a.DB == "" {
		fmt.Fprintf(io.err, "jurat: there is no installation in %s, so nothing is sealed: 'jurat ca publish' carries it into a log later\n", a.Data)
		return caHint(do(authority, nil))
	}
	return err
}

// reachable opens the installation in which acts are to be sealed, before anything is made. A default folder without one seals nothing.
func (f *caFlags) reachable(ctx context.Context, a *app) error {
	if f.Offline {
		return nil
	}
	err := a.with(ctx, func(*installation.Installation) error { return nil })
	if errors.Is(err, installation.ErrNone) && a.Data == defaultData && a.DB == "" {
		return nil
	}
	return err
}

// publish seals what the CA did, and says which keys the log does not let it register.
func publish(ctx context.Context, io stdio, authority *ca.CA, i *installation.Installation) (*certlog.Published, error) {
	if i == nil {
		return new(certlog.Published), nil
	}
	done, err := i.Certificates.Publish(ctx, authority)
	for _, r := range done.Refusals {
		fmt.Fprintf(io.err, "jurat: %v\n", r)
	}
	return done, err
}

// caHint says what can be done where something stands in the way of a CA.
func caHint(err error) error {
	var refusal *certlog.Refusal
	switch {
	case errors.Is(err, ca.ErrNone):
		return hint(err, "'jurat ca init' makes one; --ca DIR or JURAT_CA says where it is")
	case errors.As(err, &refusal):
		return hint(err, "the certificate was issued; 'jurat ca show %s' prints it, and 'jurat ca revoke' revokes it", refusal.Serial)
	case errors.Is(err, certlog.ErrOther):
		return hint(err, "'jurat keys rotate ROLE NAME --public FILE' puts the owner's new key in its place; then issue again")
	case errors.Is(err, keys.ErrHeld):
		return hint(err, "'jurat keys rotate ROLE NAME --public FILE' gives the key to its owner; then issue again")
	case errors.Is(err, certlog.ErrStale):
		return hint(err, "'jurat log checkpoint' prints the checkpoint, and 'jurat keys request --checkpoint FILE' puts it into a request; --any-age issues without it")
	case errors.Is(err, ca.ErrTaken):
		return hint(err, "'jurat ca list' shows whose it is; 'jurat ca revoke' frees it")
	case errors.Is(err, ca.ErrEnded):
		return hint(err, "its owner makes a new request: 'jurat keys request'")
	case errors.Is(err, ca.ErrUnknown):
		return hint(err, "'jurat ca list' shows the serial numbers")
	case errors.Is(err, ca.ErrExpired):
		return hint(err, "make a new CA in another folder, and give readers its certificate")
	case errors.Is(err, certlog.ErrBehind):
		return hint(err, "the folder is an old copy: bring back a newer one. If there is none, make a new CA: this one's next list would have a number that was given before")
	}
	return err
}

type caInitCmd struct {
	caFlags
	Name  string             `required:"" help:"The CA's name, as readers see it: that of the organisation that vouches for the keys."`
	Alg   evidence.Algorithm `help:"Algorithm of its key: ES256 or RS256." default:"ES256" enum:"ES256,RS256"`
	Token string             `placeholder:"URI" help:"Its key on a token: pkcs11:token=LABEL;object=NAME. It is made if it is not there."`
	helperFlag
	Years  int    `help:"How many years it lasts." default:"10"`
	CRLURL string `name:"crl-url" placeholder:"URL" help:"Where its list can be fetched. Certificates name this address; verification never asks it."`
	whyFlags
}

// Help is shown by 'jurat ca init --help'.
func (*caInitCmd) Help() string {
	return `A reader who puts the CA's certificate into their trust file believes the keys that it certifies. So the CA's key belongs on a machine
or a token that the server of the installation cannot reach. The CA needs no installation and no network.

    jurat ca init --ca agents-ca --name "Example Ltd agents" --reason "our agents" --offline
    jurat ca show --ca agents-ca > ca.pem          give it to those who verify

An agent's owner makes a key and a request, and the CA answers with a certificate:

    jurat keys request logistics-agent-v1 --key private.pem --checkpoint checkpoint > request.pem
    jurat ca issue --ca agents-ca request.pem --reason "the logistics team asked" > certificate.pem

Keep a copy of the folder after each act: a CA without it can revoke nothing. docs/certificates.md has the whole story, and how
other CAs issue such certificates.` + sealedAtOnce
}

// Run makes a CA.
func (c *caInitCmd) Run(ctx context.Context, a *app, io stdio) (err error) {
	why, err := c.why()
	if err != nil {
		return err
	}
	if err := c.reachable(ctx, a); err != nil {
		return err
	}
	helper := &token.Helper{}
	on, err := c.find(ctx, helper, c.Token, c.Alg)
	if err == nil {
		_, err = ca.Create(ctx, ca.Config{Dir: c.CA, Helper: helper}, ca.Plan{Name: c.Name, Algorithm: c.Alg, On: on, Years: c.Years, CRL: c.CRLURL, By: why.By, Reason: why.Reason})
	}
	helper.Close()
	if err != nil {
		return err
	}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		if _, err := publish(ctx, io, authority, i); err != nil {
			return err
		}
		return io.line("%s", authority.ID)
	})
}

type caIssueCmd struct {
	caFlags
	Request string `arg:"" optional:"" default:"-" help:"A certificate request (PKCS #10), PEM or DER; - is standard input."`
	Days    int    `placeholder:"N" help:"How long it is valid. Default: 30 days; with --short 7."`
	Short   bool   `help:"A certificate that is never revoked (RFC 9608), for at most 7 days."`
	AnyAge  bool   `help:"Also if the request does not prove by a checkpoint of the log that it was made lately."`
	whyFlags
}

// Help is shown by 'jurat ca issue --help'.
func (*caIssueCmd) Help() string {
	return `The request must be signed with its key, name one actor as urn:jurat:ROLE:NAME among its alternative names, and ask for nothing that the
CA does not give. 'jurat keys request' makes such requests, and so does OpenSSL: see docs/certificates.md.

The name must be free, or the key must be its owner's: by the log's key events if an installation is at hand, and otherwise by what this
CA has issued. With an installation, the request must name a checkpoint of its log that was the latest in the last three days, the key is
registered as by 'jurat keys register', and the certificate stands in the log for all to see.

Whether the request comes from the owner of the name is for you to find out. The request proves only who holds the key.` + sealedAtOnce
}

// Run issues a certificate.
func (c *caIssueCmd) Run(ctx context.Context, a *app, io stdio) error {
	doc, err := readInput(io.in, c.Request)
	if err != nil {
		return err
	}
	request, err := ca.ParseRequest(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing request: %w", err), "'jurat keys request' makes requests that are taken; nothing was issued")
	}
	why, err := c.why()
	if err != nil {
		return err
	}
	order := certlog.Order{Order: ca.Order{Request: request, Life: time.Duration(c.Days) * ca.Day, Short: c.Short, By: why.By, Reason: why.Reason}, AnyAge: c.AnyAge}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		made, err := issue(ctx, authority, i, order)
		if err != nil {
			return err
		}
		return io.document(inPEM(made.Certificate))
	})
}

func issue(ctx context.Context, authority *ca.CA, i *installation.Installation, order certlog.Order) (*ca.Issued, error) {
	if i == nil {
		return authority.Issue(ctx, order.Order)
	}
	return i.Certificates.Issue(ctx, authority, order)
}

func inPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// A dailyWhy is the reason for what a job does.
type dailyWhy struct {
	Reason string  `help:"Why. It goes into the log." default:"routine"`
	By     newName `help:"Who decided it. It goes into the log. Default: the name of the account."`
}

func (f *dailyWhy) why() (keys.Why, error) { return (&whyFlags{Reason: f.Reason, By: f.By}).why() }

type caRenewCmd struct {
	caFlags
	Serial []string `arg:"" optional:"" help:"Serial numbers, as 'jurat ca list' prints them. None: all whose time has come."`
	Out    string   `placeholder:"DIR" help:"Write each new certificate into this folder, as SERIAL.pem."`
	dailyWhy
}

// Help is shown by 'jurat ca renew --help'.
func (*caRenewCmd) Help() string {
	return `The time of a certificate has come after two thirds of its life. The new one is for the same key and name, for as long. With an
installation, the log gives it to the key's records from then on, and the owner need do nothing. What was revoked or has expired is not
renewed. Run it as a daily job:

    jurat ca renew --ca agents-ca && jurat ca crl --ca agents-ca --out agents.crl

Exit code 0: all that was due is renewed, or nothing was. 2: something could not be renewed.` + sealedAtOnce
}

// Run renews certificates.
func (c *caRenewCmd) Run(ctx context.Context, a *app, io stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		serials := c.Serial
		if len(serials) == 0 {
			due, err := authority.Due(ctx)
			if err != nil {
				return err
			}
			for _, one := range due {
				serials = append(serials, one.Serial)
			}
		}
		var failed error
		for _, serial := range serials { // one that is refused does not stop the others
			if err := c.renew(ctx, io, authority, i, serial, why); err != nil {
				failed = errors.Join(failed, err)
			}
			if ctx.Err() != nil {
				break
			}
		}
		return failed
	})
}

func (c *caRenewCmd) renew(ctx context.Context, io stdio, authority *ca.CA, i *installation.Installation, serial string, why keys.Why) (err error) {
	var made *ca.Issued
	if i == nil {
		made, err = authority.Renew(ctx, serial, why.By, why.Reason)
	} else {
		made, err = i.Certificates.Renew(ctx, authority, serial, why.By, why.Reason)
	}
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := atomicfile.Create(filepath.Join(c.Out, made.Serial+".pem"), inPEM(made.Certificate), 0o644); err != nil {
			return err
		}
	}
	return io.line("%s  %s %s until %s, in the place of %s", made.Serial, made.Role, made.Name, made.Certificate.NotAfter.Format(keyTime), serial)
}

type caRevokeCmd struct {
	caFlags
	Which       []string   `arg:"" name:"serial-or-key" help:"Serial numbers, as 'jurat ca list' prints them, or key ids: all certificates of the key."`
	Cause       string     `required:"" help:"keyCompromise, affiliationChanged, superseded, cessationOfOperation, privilegeWithdrawn or unspecified." enum:"keyCompromise,affiliationChanged,superseded,cessationOfOperation,privilegeWithdrawn,unspecified"`
	InvalidFrom *time.Time `help:"When others may first have had the key (RFC 3339). Default: nothing is said, and now counts."`
	whyFlags
}

// Help is shown by 'jurat ca revoke --help'.
func (*caRevokeCmd) Help() string {
	return `Makes a new list at once, which 'jurat ca crl' prints: readers must get it before it counts. Records stand if an independent
authority's time proves that they existed before the revocation, or before --invalid-from if that is given. A certificate that is revoked
already can only get an earlier --invalid-from.

The log's own key is another matter: 'jurat keys revoke' makes the log refuse what the key signs.` + sealedAtOnce
}

// Run revokes certificates.
func (c *caRevokeCmd) Run(ctx context.Context, a *app, io stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	invalid := time.Time{}
	if c.InvalidFrom != nil {
		invalid = *c.InvalidFrom
	}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		serials, err := c.serials(ctx, authority)
		if err != nil {
			return err
		}
		list, err := authority.Revoke(ctx, serials, c.Cause, invalid, why.By, why.Reason)
		if err != nil {
			return err
		}
		if _, err := publish(ctx, io, authority, i); err != nil {
			return fmt.Errorf("revoked, and not sealed yet ('jurat ca publish' tries again): %w", err)
		}
		return io.line("revoked %s; the list %s says so: 'jurat ca crl' prints it", strings.Join(serials, " "), list.Number)
	})
}

// serials are those that are named, and those of the named keys' certificates that are not revoked.
func (c *caRevokeCmd) serials(ctx context.Context, authority *ca.CA) ([]string, error) {
	var serials []string
	for _, which := range c.Which {
		var key evidence.KeyID
		if err := key.UnmarshalText([]byte(which)); err != nil {
			serials = append(serials, which)
			continue
		}
		all, err := authority.Issued(ctx)
		if err != nil {
			return nil, err
		}
		found := len(serials)
		for _, one := range all {
			if one.KeyID == key && one.Revoked == nil {
				serials = append(serials, one.Serial)
			}
		}
		if len(serials) == found {
			return nil, fmt.Errorf("%w: none for the key %s that is not revoked", ca.ErrUnknown, key)
		}
	}
	return serials, nil
}

type caListCmd struct {
	CA   string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder."`
	JSON bool   `name:"json" help:"Print the list as JSON."`
}

// issuedLine is a certificate as it is listed.
type issuedLine struct {
	Serial    string         `json:"serial"`
	Role      evidence.Role  `json:"role"`
	Name      string         `json:"name"`
	KeyID     evidence.KeyID `json:"key_id"`
	NotBefore string         `json:"not_before"`
	NotAfter  string         `json:"not_after"`
	Short     bool           `json:"short,omitzero"`
	State     string         `json:"state"` // valid, due, expired or revoked
	RenewAt   string         `json:"renew_at"`
	Cause     string         `json:"cause,omitzero"`
	From      string         `json:"revoked_from,omitzero"` // since when nothing that the key signed counts
	By        string         `json:"by"`
	Reason    string         `json:"reason"`
}

// Run lists certificates.
func (c *caListCmd) Run(ctx context.Context, io stdio) error {
	authority, err := ca.Open(ctx, ca.Config{Dir: c.CA})
	if err != nil {
		return caHint(err)
	}
	all, err := authority.Issued(ctx)
	if err != nil {
		return err
	}
	lines := []issuedLine{}
	for _, one := range all {
		line := issuedLine{Serial: one.Serial, Role: one.Role, Name: one.Name, KeyID: one.KeyID, NotBefore: one.Certificate.NotBefore.Format(keyTime),
			NotAfter: one.Certificate.NotAfter.Format(keyTime), Short: one.Short, State: one.State(time.Now()), RenewAt: one.DueAt().Format(keyTime), By: one.By, Reason: one.Reason}
		if one.Revoked != nil {
			line.Cause, line.From = one.Revoked.Cause, one.Revoked.Since().UTC().Format(keyTime)
		}
		lines = append(lines, line)
	}
	if c.JSON {
		return io.json(lines)
	}
	p := newPrinter(io.out)
	t := table{heads: []head{{name: "serial number", rank: 1}, {name: "role"}, {name: "state"}, {name: "until", rank: 2}, {name: "name"}}}
	for _, l := range lines {
		t.row(l.Serial, l.Role, l.State, l.NotAfter, l.Name)
		if l.Cause != "" {
			t.below(fmt.Sprintf("from %s: %s", l.From, l.Cause), "")
		}
	}
	p.table(&t)
	return p.err
}

type caShowCmd struct {
	CA     string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder."`
	Serial string `arg:"" optional:"" help:"A serial number, as 'jurat ca list' prints it. None: the CA's own certificate."`
}

// Run prints a certificate.
func (c *caShowCmd) Run(ctx context.Context, io stdio) error {
	authority, err := ca.Open(ctx, ca.Config{Dir: c.CA})
	if err != nil {
		return caHint(err)
	}
	certificate := authority.Certificate
	if c.Serial != "" {
		one, err := authority.Find(ctx, c.Serial)
		if err != nil {
			return caHint(err)
		}
		certificate = one.Certificate
	}
	return io.document(inPEM(certificate))
}

type caCRLCmd struct {
	caFlags
	New bool   `help:"Make another list, also if the one in force is younger than a day."`
	Out string `placeholder:"FILE" help:"Write the list here, in DER, in place of what was there."`
	dailyWhy
}

// Help is shown by 'jurat ca crl --help'.
func (*caCRLCmd) Help() string {
	return `A list is good for seven days. Run this daily, and put the list where readers get it. A revocation makes its list at once. Lists name
every certificate that was ever revoked, also after it expired.

    jurat ca crl --ca agents-ca --out /var/www/agents.crl
    jurat verify --trust trust.json --crl agents.crl record.json` + sealedAtOnce
}

// Run prints or writes the list.
func (c *caCRLCmd) Run(ctx context.Context, a *app, io stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		list, err := authority.List(ctx, c.New, why.By, why.Reason)
		if err != nil {
			return err
		}
		if _, err := publish(ctx, io, authority, i); err != nil { // before readers can have it
			return err
		}
		if c.Out != "" {
			return atomicfile.Replace(c.Out, list.DER, 0o644)
		}
		return io.document(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: list.DER}))
	})
}

type caOCSPCmd struct {
	caFlags
	Serial string `arg:"" help:"The certificate's serial number, as 'jurat ca list' prints it."`
	Out    string `required:"" placeholder:"FILE" help:"Write the response here, in DER, in place of what was there."`
	dailyWhy
}

// Help is shown by 'jurat ca ocsp --help'.
func (*caOCSPCmd) Help() string {
	return `The response (RFC 6960) is signed by the CA itself. It is good for seven days, and made anew after one, or when the certificate was
revoked. It says of one certificate what the list says of all.` + sealedAtOnce
}

// Run writes a response.
func (c *caOCSPCmd) Run(ctx context.Context, a *app, io stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	return c.with(ctx, a, io, func(authority *ca.CA, i *installation.Installation) error {
		der, err := authority.Answer(ctx, c.Serial, why.By, why.Reason)
		if err != nil {
			return err
		}
		if _, err := publish(ctx, io, authority, i); err != nil { // before readers can have it
			return err
		}
		return atomicfile.Replace(c.Out, der, 0o644)
	})
}

type caPublishCmd struct {
	CA string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder, or a copy of it without ca.key."`
}

// Help is shown by 'jurat ca publish --help'.
func (*caPublishCmd) Help() string {
	return `Seals what the CA did and the log does not have: certificates, revocations, lists and responses, each once and in order. It can be repeated
at any time. It needs no key of the CA: copy the folder acts from the offline machine.

Keys of certificates are registered. If the log's rules refuse that, because the name is another's, the certificate is sealed all the same,
so that those who watch the log see it.

Exit code 0: the log has everything. 1: it has, and some keys are not registered. 2: it could not be done.`
}

// Run publishes.
func (c *caPublishCmd) Run(ctx context.Context, a *app, io stdio) error {
	authority, err := ca.Open(ctx, ca.Config{Dir: c.CA})
	if err != nil {
		return caHint(err)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		done, err := publish(ctx, io, authority, i)
		if err != nil {
			return caHint(err)
		}
		if err := io.line("%s sealed, %s registered", plural.Of(int64(done.Acts), "act"), plural.Of(int64(done.Keys), "key")); err != nil {
			return err
		}
		if len(done.Refusals) > 0 {
			return exitCode(exitBad)
		}
		return nil
	})
}

package main

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/log/ca"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/log/token"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" default:"withargs" help:"List every key of this installation, with who holds it and what became of it."`
	New    keysNewCmd    `cmd:"" help:"Make a key for an actor, or take in the public key of an agent or reviewer who holds the private one."`
	Rotate keysRotateCmd `cmd:"" help:"Put a new key in the place of an actor's present one."`
	Revoke keysRevokeCmd `cmd:"" help:"End a key that others may have signed with, or one that is out of use."`
	Rewrap keysRewrapCmd `cmd:"" help:"Wrap every secret in the database under the first wrapping key of the file, or make such a key."`
}

type keysListCmd struct {
	History bool `help:"What the log says was done to keys, by whom and why."`
	jsonFlag
}

// keyLine is a key as it is listed: everything but the private half.
type keyLine struct {
	Role      evidence.Role      `json:"role"`
	Name      string             `json:"name"`
	Algorithm evidence.Algorithm `json:"alg"`
	KeyID     evidence.KeyID     `json:"key_id"`
	Created   string             `json:"created"`
	Custody   string             `json:"custody"`
	State     string             `json:"state"`
	Token     string             `json:"token,omitempty"` // where the key is, if it is on a token
}

const keyTime = "2006-01-02T15:04:05Z"

// keyLines lists the keys that the log speaks of, and those in files of which it says nothing.
func keyLines(history *keys.History, files []*keys.Held, now time.Time) []keyLine {
	lines := []keyLine{}
	tokens := map[evidence.KeyID]string{}
	for _, k := range files {
		tokens[k.KeyID] = k.Token
	}
	for _, k := range history.Keys() {
		lines = append(lines, keyLine{k.Role, k.Name, k.Algorithm, k.KeyID, k.From.UTC().Format(keyTime), k.Custody, k.State(now), tokens[k.KeyID]})
	}
	for _, k := range files {
		if history.Key(k.KeyID) == nil {
			lines = append(lines, keyLine{k.Role, k.Name, k.Algorithm, k.KeyID, k.Created.UTC().Format(keyTime), operator.CustodyOperator, "active", k.Token})
		}
	}
	slices.SortStableFunc(lines, func(a, b keyLine) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Created, b.Created))
	})
	return lines
}

func (c *keysListCmd) Run(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if c.History {
			return c.history(ctx, i, std)
		}
		history, err := i.Ledger.Keys(ctx)
		files, failed := i.Keys.Keys(ctx)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		lines := keyLines(history, files, time.Now())
		t := table{heads: []head{{name: "role"}, {name: "algorithm"}, {name: "key", rank: 1}, {name: "signs since", rank: 4}, {name: "custody", rank: 3}, {name: "state", rank: 2}, {name: "name"}}}
		for _, k := range lines {
			t.row(k.Role, k.Algorithm, k.KeyID, k.Created, k.Custody, k.State, k.Name)
			t.below(k.Token != "", "", "on a token: %s", k.Token)
		}
		return c.list(std, lines, nil, &t, "")
	})
}

type eventLine struct {
	Record    string                `json:"record_id"`
	Timestamp string                `json:"timestamp"`
	Event     operator.KeyEventBody `json:"event"`
}

func (c *keysListCmd) history(ctx context.Context, i *installation.Installation, std stdio) error {
	events, err := i.Ledger.Chain(ctx, operator.KeysChain)
	if errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	lines := []eventLine{}
	for _, r := range events {
		body, err := operator.Read[operator.KeyEventBody](&r.Payload)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		lines = append(lines, eventLine{Record: r.Payload.RecordID, Timestamp: r.Payload.Timestamp, Event: *body})
	}
	t := table{heads: []head{{name: "time", rank: 3}, {name: "event"}, {name: "role"}, {name: "algorithm", rank: 2}, {name: "key", rank: 1}, {name: "name"}}}
	for _, l := range lines {
		e := l.Event
		t.row(l.Timestamp, e.Event, e.Role, e.Algorithm, e.KeyID, e.Name)
		t.below(!e.Replaces.IsZero(), "", "in the place of %s", e.Replaces)
		t.below(!e.Card.IsZero(), "", "with the agent card %s", e.Card)
		t.below(e.Protection != nil, "", "%s", protectionLine(e.Protection))
		t.below(true, "", "from %s, held by the %s; %s: %s", e.From, e.Custody, e.By, e.Reason)
	}
	return c.list(std, lines, err, &t, "")
}

func protectionLine(p *operator.Protection) string {
	if p == nil {
		return ""
	}
	var device remarks
	device.add(p.Manufacturer != "", "%s", p.Manufacturer)
	device.add(p.Model != "", "%s", p.Model)
	device.add(p.Serial != "", "serial number %s", p.Serial)
	return "as the operator says, kept by " + p.Kind + device.behind(", ") + pick(p.Local, "; made there", "") + pick(p.NeverExtractable, "; never extractable", "")
}

type whyFlags struct {
	Reason string  `required:"" placeholder:"TEXT" help:"Why. It goes into the log."`
	By     newName `placeholder:"NAME" help:"Who decided it. It goes into the log. Default: the name of the account."`
}

func (f *whyFlags) why() (keys.Why, error) {
	if f.By != "" {
		return keys.Why{Reason: f.Reason, By: string(f.By)}, nil
	}
	account, err := user.Current()
	if err != nil {
		return keys.Why{}, hint(fmt.Errorf("finding out who you are: %w", err), "--by NAME says it")
	}
	return keys.Why{Reason: f.Reason, By: account.Username}, nil
}

// whenWhyFlags are the flags of a command of which only some uses change what is sealed.
type whenWhyFlags struct {
	Reason string  `placeholder:"TEXT" help:"Why. It goes into the log, and is needed for whatever does."`
	By     newName `placeholder:"NAME" help:"Who decided it. It goes into the log. Default: the name of the account."`
}

func (f *whenWhyFlags) why() (keys.Why, error) {
	if f.Reason == "" {
		return keys.Why{}, errors.New("missing flags: --reason=TEXT")
	}
	return (&whyFlags{f.Reason, f.By}).why()
}

type publicFlags struct {
	Public      []string `placeholder:"FILE" help:"The public key in PEM. Repeat it for an ML-DSA-65 key that signs with it."`
	Certificate []string `placeholder:"FILE" help:"Certificates in PEM: the key's, then those above. They go out with records, which makes them no more trusted."`
}

// read reads the keys, and gives each, and those that are read already, the certificates that begin with its own.
func (f *publicFlags) read(owned ...keys.OwnerKey) ([]keys.OwnerKey, error) {
	given, err := readKeys(f.Public, func(text []byte) (key keys.OwnerKey, err error) {
		public, err := client.ParsePublicKey(text)
		if err == nil {
			key.Public, err = evidence.MarshalPublicKey(public)
		}
		return key, err
	})
	if err != nil {
		return nil, err
	}
	owned = append(owned, given...)
	certificates, err := readCertificates(f.Certificate)
	if err != nil {
		return nil, err
	}
	return owned, keys.AddCertificates(owned, certificates)
}

func readCertificates(files []string) ([][]byte, error) {
	var list [][]byte
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return nil, err
		}
		found := len(list)
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != "CERTIFICATE" {
				return nil, fmt.Errorf("%s: want certificates in PEM, found %q", file, block.Type)
			}
			list = append(list, block.Bytes)
		}
		if len(list) == found {
			return nil, fmt.Errorf("%s: want certificates in PEM, found none", file)
		}
	}
	return list, nil
}

type keysNewCmd struct {
	Role evidence.Role      `arg:"" help:"${enum}." enum:"agent, reviewer, submitter, juror, judge, clerk, operator, recorder"`
	Name string             `arg:"" help:"The actor's name, as in agent_id or reviewer_id."`
	Alg  evidence.Algorithm `help:"ES256, RS256, Ed25519; or ML-DSA-65, a second key beside one of these." default:"ES256" enum:"ES256,RS256,Ed25519,ML-DSA-65"`
	publicFlags
	Token []string `placeholder:"URI" help:"The key on a token: pkcs11:token=LABEL;object=NAME. It is made if it is not there, unless its owner keeps it."`
	helperFlag
	Owner    bool      `help:"The agent or reviewer holds the private key, also if --token names it. So it is with --public."`
	Card     string    `placeholder:"FILE" help:"Of an owner's key: the actor's A2A agent card in JSON. Its digest goes into the log, beside the key."`
	NotAfter time.Time `placeholder:"TIME" help:"Of an owner's key: it signs nothing from this time on (RFC 3339)."`
	whenWhyFlags
}

func (c *keysNewCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.Owner || len(c.Public) > 0 {
		return c.register(ctx, a, std)
	}
	if c.Card != "" || !c.NotAfter.IsZero() || c.Certificate != nil || c.Reason != "" || c.By != "" || len(c.Token) > 1 {
		return errors.New("--card, --certificate, --not-after, --reason, --by and a second --token go with an owner's key: --public FILE, or --owner --token URI")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		on, err := c.find(ctx, &i.Helper, strings.Join(c.Token, ""), c.Alg)
		if err != nil {
			return err
		}
		key, err := i.Keys.Create(ctx, c.Role, c.Name, c.Alg, on)
		if err != nil {
			return err
		}
		return std.line("%s", key.KeyID)
	})
}

func (c *keysNewCmd) register(ctx context.Context, a *app, std stdio) error {
	err := cmp.Or(refuse(c.Role != evidence.RoleAgent && c.Role != evidence.RoleReviewer, "%s: only an agent or a reviewer can hold its own key", c.Role),
		refuse(len(c.Public)+len(c.Token) == 0, "--owner: want --public FILE, or --token URI"))
	if err != nil {
		return err
	}
	owned, err := c.publicOnToken(ctx)
	if err == nil {
		owned, err = c.read(owned...)
	}
	if err == nil {
		err = addCard(std, c.Card, c.Role, c.Name, owned)
	}
	if err != nil {
		return err
	}
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
		if err := i.Keys.Register(ctx, c.Role, c.Name, owned, c.NotAfter, why); err != nil {
			return err
		}
		p := newPrinter(std.out)
		for _, k := range owned {
			p.line("%s", evidence.DigestOf(k.Public))
		}
		return p.err
	})
}

func (c *keysNewCmd) publicOnToken(ctx context.Context) (owned []keys.OwnerKey, err error) {
	helper := &token.Helper{}
	defer helper.Close()
	references, err := c.known(ctx, helper, c.Token)
	if err != nil {
		return nil, err
	}
	return each(references, func(r token.Reference) (keys.OwnerKey, error) {
		der, err := evidence.MarshalPublicKey(r.Public)
		return keys.OwnerKey{Public: der, Protection: r.Protection}, err
	})
}

type keysRotateCmd struct {
	Role evidence.Role      `arg:"" help:"${enum}." enum:"agent, reviewer, submitter, juror, judge, clerk, operator, recorder"`
	Name string             `arg:"" help:"The actor's name."`
	Alg  evidence.Algorithm `help:"Of the new first key: ES256, RS256 or Ed25519. Default: as before; with --token ES256." default:"" enum:",ES256,RS256,Ed25519"`
	publicFlags
	Token string `placeholder:"URI" help:"The new first key, on a token: pkcs11:token=LABEL;object=NAME. It is made if it is not there."`
	helperFlag
	whyFlags
}

func (c *keysRotateCmd) Run(ctx context.Context, a *app, std stdio) error {
	if len(c.Public) == 0 && len(c.Certificate) > 0 || len(c.Public) > 0 && (c.Alg != "" || c.Token != "") {
		return errors.New("--certificate goes with --public, and --alg and --token do not")
	}
	owned, err := c.read()
	if err != nil {
		return err
	}
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
		if len(owned) > 0 {
			err = i.Keys.RotateOwned(ctx, c.Role, c.Name, owned, why)
		} else {
			err = c.rotate(ctx, i, why)
		}
		if err != nil {
			return err
		}
		history, err := i.Ledger.Keys(ctx)
		if err != nil {
			return err
		}
		p := newPrinter(std.out)
		for _, k := range history.Active(c.Role, c.Name, time.Now()) {
			p.line("%s", k.KeyID)
		}
		return p.err
	})
}

func (c *keysRotateCmd) rotate(ctx context.Context, i *installation.Installation, why keys.Why) error {
	if c.Token != "" && c.Alg == "" {
		c.Alg = evidence.ES256
	}
	on, err := c.find(ctx, &i.Helper, c.Token, c.Alg)
	if err != nil {
		return err
	}
	return i.Keys.Rotate(ctx, c.Role, c.Name, c.Alg, on, why)
}

type keysRevokeCmd struct {
	Key    evidence.KeyID `arg:"" name:"key-id" help:"The key's id, as 'jurat keys list' prints it."`
	From   time.Time      `xor:"how" placeholder:"TIME" help:"When others may first have had it (RFC 3339). Default: now."`
	Retire bool           `xor:"how" help:"No other has had it: it signs no more, and what it signed stands."`
	whyFlags
}

func (c *keysRevokeCmd) Run(ctx context.Context, a *app) error {
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
		if c.Retire {
			return i.Keys.Retire(ctx, c.Key, why)
		}
		return i.Keys.Revoke(ctx, c.Key, c.From, why)
	})
}

// deciding does what with does, for a reason that goes into the log.
func (a *app) deciding(ctx context.Context, why func() (keys.Why, error), do func(*installation.Installation, keys.Why) error) error {
	reason, err := why()
	if err != nil {
		return err
	}
	err = a.with(ctx, func(i *installation.Installation) error { return do(i, reason) })
	return hintIf(keys.ErrOwner, err, "--public FILE names the owner's next key")
}

type keysRewrapCmd struct {
	New string `placeholder:"FILE" help:"Only make a wrapping key, in this new file of mode 0600."`
}

func (c *keysRewrapCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.New != "" {
		text := filestore.Generate()
		keys, err := filestore.Parse(text)
		if err == nil {
			err = hintIf(fs.ErrExist, atomicfile.Create(c.New, text, 0o600), "a wrapping key is never overwritten: keys may be wrapped under it")
		}
		return std.lineUnless(err, "%s", keys)
	}
	if a.DB == "" {
		return hint(errors.New("no database is named: the files in a data folder are not wrapped"), "--db or JURAT_DB names one")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		told := progress(std, "files wrapped")
		done, key, err := i.Rewrap(ctx, func(done int64) { told(done, done) })
		return std.lineUnless(err, "%d files were wrapped again; all of them are under %s now", done, key)
	})
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

func (c *caInitCmd) Run(ctx context.Context, std stdio) error {
	helper := &token.Helper{}
	defer helper.Close()
	on, err := c.find(ctx, helper, c.Token, evidence.ES256)
	if err != nil {
		return err
	}
	_, err = ca.Create(ctx, ca.Config{Dir: c.CA, Helper: helper}, ca.Plan{Name: c.Name, On: on, Years: c.Years})
	return std.lineUnless(err, "%s", filepath.Join(c.CA, ca.Certificate))
}

type caIssueCmd struct {
	caFlags
	Request string `arg:"" optional:"" default:"-" help:"A certificate request (PKCS #10), PEM or DER; - is standard input."`
	Days    int    `help:"How long it is valid." default:"30"`
}

func (c *caIssueCmd) Run(ctx context.Context, std stdio) error {
	doc, err := readInput(std.in, c.Request)
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
		return std.document(ca.PEM(made), nil)
	})
}

type caRevokeCmd struct {
	caFlags
	Certificate string    `arg:"" help:"The certificate; the CA's folder has those that it issued."`
	Cause       ca.Cause  `required:"" help:"${enum}." enum:"keyCompromise, affiliationChanged, superseded, cessationOfOperation, privilegeWithdrawn, unspecified"`
	InvalidFrom time.Time `help:"When others may first have had the key (RFC 3339). Default: nothing is said, and now counts."`
}

func (c *caRevokeCmd) Run(ctx context.Context, std stdio) error {
	certificate, err := readOneCertificate(c.Certificate)
	if err != nil {
		return err
	}
	return c.with(ctx, func(authority *ca.CA) error {
		return std.lineUnless(authority.Revoke(ctx, certificate, c.Cause, c.InvalidFrom), "revoked: 'jurat ca crl' makes the list that says so")
	})
}

type caCRLCmd struct {
	caFlags
	Out string `short:"o" placeholder:"FILE" help:"Write it there, in the place of what is there."`
}

func (c *caCRLCmd) Run(ctx context.Context, std stdio) error {
	return c.with(ctx, func(authority *ca.CA) error {
		der, err := authority.List(ctx)
		text := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
		if err == nil && c.Out != "" {
			return atomicfile.Replace(c.Out, text, 0o644)
		}
		return std.document(text, err)
	})
}

package stamping

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// An Outside authority stamps records beside the built-in one, by a clock that is not the operator's.
type Outside struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Roots  string `json:"roots"`            // PEM: the roots that its tokens chain to; "" with Qualified
	Policy string `json:"policy,omitempty"` // OID in dotted form, requested and required; "": the authority's default

	// Qualified says that its tokens must be qualified time stamps, by these authorities of one provider in the trusted lists. nil: they need not be.
	Qualified *trust.Trust `json:"qualified,omitempty"`
}

// Folder is the folder of the outside authorities in the file store.
const Folder = "outside-authorities"

var outsideName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)

// check validates the description, and returns a client for the authority.
func (o *Outside) check() (*Client, error) {
	if !outsideName.MatchString(o.Name) {
		return nil, fmt.Errorf("name %q: want lower-case letters, digits and hyphens", o.Name)
	}
	if o.Name == BuiltIn {
		return nil, fmt.Errorf("%q is the built-in one", BuiltIn)
	}
	roots, listed, err := o.rootsOrListed()
	if err != nil {
		return nil, err
	}
	client, err := newClient(o.URL, roots)
	if err != nil {
		return nil, err
	}
	client.name, client.provider = o.Name, listed
	if o.Policy != "" {
		if client.policy, err = x509.ParseOID(o.Policy); err != nil {
			return nil, fmt.Errorf("policy %q is not an object identifier in dotted form", o.Policy)
		}
	}
	return client, nil
}

// rootsOrListed returns the roots, or the provider and the certificates by which the trusted lists know it.
func (o *Outside) rootsOrListed() (roots []*x509.Certificate, listed *provider, err error) {
	if o.Qualified == nil {
		roots, err = parseRoots([]byte(o.Roots))
		return roots, nil, err
	}
	file, err := o.Qualified.Prepared()
	if err != nil {
		return nil, nil, fmt.Errorf("qualified: %w", err)
	}
	if len(file.Authorities) == 0 {
		return nil, nil, errors.New("qualified: it names no authority")
	}
	for _, a := range file.Authorities {
		root, err := x509.ParseCertificate(a.Certificate)
		if err != nil {
			return nil, nil, fmt.Errorf("qualified: %w", err)
		}
		if len(a.Services) == 0 {
			return nil, nil, fmt.Errorf("qualified: %s has no services", a.Name)
		}
		roots = append(roots, root)
	}
	return roots, &provider{file}, nil
}

func parseRoots(text []byte) ([]*x509.Certificate, error) {
	var roots []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("roots: %w", err)
		}
		roots = append(roots, certificate)
	}
	if len(roots) == 0 {
		return nil, errors.New("roots: want one or more certificates in PEM")
	}
	return roots, nil
}

// Add configures an authority that stamps every record from now on. Unless untried is set, Add asks it for a token first, which reveals a
// wrong URL or root. It returns an error if the description is not valid, or if the name is taken.
func (t *Timekeeper) Add(ctx context.Context, o Outside, untried bool) (err error) {
	defer fault.While(&err, "adding time-stamping authority")
	if _, err := o.check(); err != nil {
		return err
	}
	if !untried {
		if err := o.Try(ctx); err != nil {
			return fmt.Errorf("trying it: %w", err)
		}
	}
	return t.keep(ctx, o, func(Outside) bool { return false })
}

// Try asks the authority for one time stamp, and verifies it. Its errors are those of Client.Stamp.
func (o *Outside) Try(ctx context.Context) error {
	client, err := o.check()
	if err != nil {
		return err
	}
	_, err = client.Stamp(ctx, [32]byte{})
	return err
}

// keep writes the authority's file. It takes the place of one with the name if that may be replaced.
func (t *Timekeeper) keep(ctx context.Context, o Outside, replaces func(before Outside) bool) error {
	text, err := json.Marshal(o, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	list, err := t.List(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(before Outside) bool { return before.Name == o.Name && replaces(before) }) {
		return t.Files.Replace(ctx, outsideFile(o.Name), append(text, '\n'))
	}
	err = t.Files.Create(ctx, outsideFile(o.Name), append(text, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the name %q is taken already", o.Name)
	}
	return err
}

// ErrAwaited says that records still wait for an authority's time stamps.
var ErrAwaited = errors.New("records wait for its time stamps")

// Remove removes an authority. The tokens that it gave stay, and its root should stay in the trust files that verify them. If records still
// wait for it, Remove returns ErrAwaited, unless giveUp is set. Then those records wait no longer, and the built-in authority stamps those
// that have no time stamp at all. Remove returns how many records gave up waiting.
//
// The authority is removed first. If a crash follows, or another process still has the authority and seals records, records wait for an
// authority that no longer exists. 'jurat log stamp' shows this, and the caller can repeat Remove.
func (t *Timekeeper) Remove(ctx context.Context, name string, giveUp bool) (int64, error) {
	owed, err := t.owed(ctx, name)
	if err != nil {
		return 0, err
	}
	if owed.Records > 0 && !giveUp {
		return owed.Records, fmt.Errorf("removing time-stamping authority %q: %w: %d", name, ErrAwaited, owed.Records)
	}
	err = fs.ErrNotExist
	if outsideName.MatchString(name) {
		err = t.Files.Remove(ctx, outsideFile(name))
	}
	if errors.Is(err, fs.ErrNotExist) && owed.Records == 0 {
		return 0, fmt.Errorf("removing time-stamping authority: no authority is named %q", name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err := t.stampBare(ctx, name); err != nil {
		return 0, err
	}
	return t.Ledger.Forget(ctx, name)
}

func outsideFile(name string) string { return path.Join(Folder, name+".json") }

// List returns the outside authorities, by name. It refuses a file that does not describe an authority.
func (t *Timekeeper) List(ctx context.Context) ([]Outside, error) {
	return filestore.ListJSON(ctx, t.Files, Folder, func(file string) (o Outside, err error) {
		err = filestore.ReadJSON(ctx, t.Files, file, &o)
		return o, err
	})
}

// trusted returns the entries of a trust file for this authority: one for each root.
func (o *Outside) trusted(roots []*x509.Certificate) []trust.Authority {
	var list []trust.Authority
	for _, root := range roots {
		a := trust.Authority{Name: o.Name, Certificate: root.Raw, Clock: trust.Independent}
		if at, err := url.Parse(o.URL); err == nil {
			a.Name += " (" + at.Host + ")"
		}
		if o.Policy != "" {
			a.Policies = []string{o.Policy}
		}
		list = append(list, a)
	}
	return list
}

var (
	// ErrListOutOfDate says that the trusted lists do not say any more whether an authority is qualified. Newer lists help.
	ErrListOutOfDate = errors.New("its trusted list is out of date")
	// ErrNotQualified says that a token is not a qualified time stamp by the trusted lists.
	ErrNotQualified = errors.New("its token is not a qualified time stamp")
)

// dueSoon is how long before the end of a list the operator is told.
const dueSoon = 14 * 24 * time.Hour

// A provider is what the trusted lists say of an authority: a trust file with the authorities of one provider.
type provider struct{ trust *trust.Trust }

// until returns when the newest of its lists says that a newer one is due; zero if no newer one is to come.
func (p provider) until() (until time.Time) {
	for _, a := range p.trust.Authorities {
		for _, s := range a.Services {
			if s.List.NextUpdate.IsZero() {
				return time.Time{}
			}
			if s.List.NextUpdate.After(until) {
				until = s.List.NextUpdate
			}
		}
	}
	return until
}

// fresh returns ErrListOutOfDate if no list says anything of now.
func (p provider) fresh(now time.Time) error {
	if until := p.until(); !until.IsZero() && now.After(until) {
		return fmt.Errorf("%w since %s: %s; fetch newer lists, and give them with 'jurat tsa --qualified'", ErrListOutOfDate,
			until.UTC().Format(time.RFC3339), p.list())
	}
	return nil
}

// list names the list of the first service.
func (p provider) list() string {
	s := p.trust.Authorities[0].Services[0]
	return fmt.Sprintf("the list of %s, number %d, issued %s", s.Territory, s.List.Sequence, s.List.Issued.UTC().Format(time.RFC3339))
}

// qualified returns ErrNotQualified unless a token that was just received is a qualified time stamp now.
func (p provider) qualified(token *timestamp.Unverified, imprint [sha256.Size]byte, now time.Time) (*trust.Qualified, error) {
	checker := trust.Checker{Trust: p.trust, At: now, Memory: timestamp.NewMemory(), Share: timestamp.NewShare()}
	stamped, err := checker.Verify(token, imprint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotQualified, err)
	case stamped.Unqualified != nil:
		return nil, fmt.Errorf("%w: %s", ErrNotQualified, stamped.Unqualified.Reason)
	case stamped.Qualified == nil:
		return nil, fmt.Errorf("%w: no service of the trusted lists has made it", ErrNotQualified)
	}
	return stamped.Qualified, nil
}

// listed are the authorities of a trust file that have services.
func listed(file *trust.Trust) (provider, error) {
	p := provider{&trust.Trust{Format: trust.Format, Lists: file.Lists}}
	for _, a := range file.Authorities {
		if len(a.Services) > 0 {
			p.trust.Authorities = append(p.trust.Authorities, trust.Authority{Name: a.Name, Certificate: a.Certificate, Clock: trust.Independent, Services: a.Services})
		}
	}
	if len(p.trust.Authorities) == 0 {
		return p, errors.New("the trust file has no service of trusted lists: 'jurat trust eu' writes one that has")
	}
	var err error
	p.trust, err = p.trust.Prepared()
	return p, err
}

// of are those authorities that are of the provider of a qualified token: it may have several units behind one URL.
func (p provider) of(q *trust.Qualified) *trust.Trust {
	kept := *p.trust
	kept.Authorities = slices.DeleteFunc(slices.Clone(kept.Authorities), func(a trust.Authority) bool {
		return !slices.ContainsFunc(a.Services, func(s trust.Service) bool { return s.Territory == q.Territory && slices.Contains(s.TSP, q.TSP) })
	})
	return &kept
}

// AddQualified configures an authority that stamps every record from now on, and whose tokens are refused unless they are qualified time
// stamps by the trusted lists in a trust file. It asks the authority for one token, which says which provider of the lists it is, and keeps
// what the lists say of that. If the authority was added so before, from the same URL, what the lists say of it is replaced.
//
// The errors include ErrNotQualified, ErrListOutOfDate and those of Client.Stamp.
func (t *Timekeeper) AddQualified(ctx context.Context, o Outside, file *trust.Trust) (q *trust.Qualified, err error) {
	defer fault.While(&err, "adding qualified time-stamping authority")
	all, err := listed(file)
	if err != nil {
		return nil, err
	}
	o.Qualified = all.trust
	client, err := o.check()
	if err != nil {
		return nil, err
	}
	client.now = t.Now
	var imprint [sha256.Size]byte
	der, err := client.Stamp(ctx, imprint)
	if err != nil {
		return nil, fmt.Errorf("trying it: %w", err)
	}
	token, err := timestamp.Parse(der)
	if err != nil {
		return nil, err
	}
	if q, err = all.qualified(token, imprint, t.Now()); err != nil {
		return nil, err
	}
	o.Qualified = all.of(q)
	return q, t.keep(ctx, o, func(before Outside) bool { return before.Qualified != nil && before.URL == o.URL })
}

// Until says until when the trusted lists say that an authority is qualified; zero if they need not, or no newer list is to come.
func (o *Outside) Until() time.Time {
	if o.Qualified == nil || len(o.Qualified.Authorities) == 0 {
		return time.Time{}
	}
	return provider{o.Qualified}.until()
}

// Due returns a note for each authority whose trusted lists are out of date, or soon will be.
func (t *Timekeeper) Due(ctx context.Context) (notes []string, err error) {
	list, err := t.List(ctx)
	for _, o := range list {
		until := o.Until()
		switch {
		case until.IsZero() || until.Sub(t.Now()) > dueSoon:
		case t.Now().After(until):
			notes = append(notes, fmt.Sprintf("%s is not asked: %v", o.Name, provider{o.Qualified}.fresh(t.Now())))
		default:
			notes = append(notes, fmt.Sprintf("%s is asked until %s only: %s, is then out of date; fetch newer lists, and give them with 'jurat tsa --qualified'", o.Name,
				until.UTC().Format(time.RFC3339), provider{o.Qualified}.list()))
		}
	}
	return notes, err
}

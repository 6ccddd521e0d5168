package stamping

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/verify/trust"
)

// An Outside authority stamps records beside the built-in one, by a clock that is not the operator's.
type Outside struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Roots  string `json:"roots"`            // PEM: the roots that its tokens chain to; "" with Qualified
	Policy string `json:"policy,omitempty"` // OID in dotted form, requested and required; "": the authority's default

	// Qualified says that its tokens must be qualified time stamps, and what the trusted lists say of it: a trust file with the authorities
	// of one provider. nil: they need not be.
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
	client.provider = listed
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
	if len(roots) == 0 {
		return nil, nil, errors.New("qualified: it names no authority")
	}
	return roots, &provider{file}, nil
}

func parseRoots(text []byte) ([]*x509.Certificate, error) {
	var roots []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("roots: %w", err)
		}
		roots, text = append(roots, certificate), rest
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
	client, err := o.check()
	if err != nil {
		return err
	}
	if !untried {
		if _, err := client.Stamp(ctx, [32]byte{}); err != nil {
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
	waiting, err := t.awaited(ctx, name)
	if err != nil {
		return 0, err
	}
	if waiting > 0 && !giveUp {
		return waiting, fmt.Errorf("removing time-stamping authority %q: %w: %d", name, ErrAwaited, waiting)
	}
	err = fs.ErrNotExist
	if outsideName.MatchString(name) {
		err = t.Files.Remove(ctx, outsideFile(name))
	}
	if errors.Is(err, fs.ErrNotExist) && waiting == 0 {
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

// awaited returns how many records wait for an authority.
func (t *Timekeeper) awaited(ctx context.Context, name string) (int64, error) {
	owing, err := t.Ledger.Owing(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range owing {
		if o.Authority == name {
			return o.Records, nil
		}
	}
	return 0, nil
}

func outsideFile(name string) string { return path.Join(Folder, name+".json") }

// List returns the outside authorities, by name. It refuses a file that does not describe an authority. Its other
// errors are those of the file store.
func (t *Timekeeper) List(ctx context.Context) ([]Outside, error) {
	return listOutside(ctx, t.Files)
}

func listOutside(ctx context.Context, files filestore.Store) (list []Outside, err error) {
	err = filestore.EachJSON(ctx, files, Folder, func(file string) error {
		text, err := files.Read(ctx, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process has just removed it
		}
		if err != nil {
			return err
		}
		var o Outside
		if err := json.Unmarshal(text, &o, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("reading %s: %w", files.Where(file), err)
		}
		list = append(list, o)
		return nil
	})
	return list, err
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

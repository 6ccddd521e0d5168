package installation

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/atomicfile"
	"jurat/internal/tsa"
	"jurat/verify"
)

// An Outside authority stamps every record beside the built-in one, by a clock that is not the operator's.
type Outside struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Roots  string `json:"roots"`            // PEM: what its tokens chain to
	Policy string `json:"policy,omitempty"` // OID in dotted form that is asked for and required; "": its default
}

const outsideFolder = "outside-authorities"

var outsideName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)

// check makes of an authority's description what asks it.
func (o *Outside) check() (*tsa.Client, []*x509.Certificate, error) {
	if !outsideName.MatchString(o.Name) {
		return nil, nil, fmt.Errorf("name %q: want lower-case letters, digits and hyphens", o.Name)
	}
	roots, err := parseRoots([]byte(o.Roots))
	if err != nil {
		return nil, nil, err
	}
	config := tsa.Config{URL: o.URL, Roots: roots}
	if o.Policy != "" {
		if config.Policy, err = x509.ParseOID(o.Policy); err != nil {
			return nil, nil, fmt.Errorf("policy %q is not an object identifier in dotted form", o.Policy)
		}
	}
	client, err := tsa.New(config)
	return client, roots, err
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

// AddOutside has an authority stamp every record from now on. It is asked for a token first: one that cannot answer
// now would stop everything.
func AddOutside(ctx context.Context, c Config, o Outside) error {
	client, _, err := o.check()
	if err != nil {
		return fmt.Errorf("adding time-stamping authority: %w", err)
	}
	if _, err := client.Stamp(ctx, [32]byte{}); err != nil {
		return fmt.Errorf("adding time-stamping authority: trying it: %w", err)
	}
	text, err := json.Marshal(o, jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("adding time-stamping authority: %w", err)
	}
	err = atomicfile.Create(outsideFile(c.Dir, o.Name), append(text, '\n'), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("adding time-stamping authority: there is one named %q already", o.Name)
	}
	return err
}

// RemoveOutside has an authority stamp no more. The tokens that it gave stay, and so should its root in the trust files
// of those who verify them.
func RemoveOutside(c Config, name string) error {
	if !outsideName.MatchString(name) {
		return fmt.Errorf("removing time-stamping authority: there is none named %q", name)
	}
	err := os.Remove(outsideFile(c.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing time-stamping authority: there is none named %q", name)
	}
	return err
}

func outsideFile(dir, name string) string { return filepath.Join(dir, outsideFolder, name+".json") }

// ListOutside lists the authorities that stamp, by name.
func ListOutside(c Config) ([]Outside, error) {
	files, err := filepath.Glob(filepath.Join(c.Dir, outsideFolder, "*.json"))
	if err != nil {
		return nil, err
	}
	var list []Outside
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var o Outside
		if err := json.Unmarshal(text, &o, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		list = append(list, o)
	}
	return list, nil
}

// stampers is the built-in authority and those outside.
type stampers struct {
	own     *authority
	clients []*tsa.Client
	trusted []verify.Authority
}

func openStampers(c Config, own *authority) (*stampers, error) {
	list, err := ListOutside(c)
	if err != nil {
		return nil, err
	}
	s := &stampers{own: own}
	for _, o := range list {
		client, roots, err := o.check()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", outsideFile(c.Dir, o.Name), err)
		}
		s.clients = append(s.clients, client)
		s.trusted = append(s.trusted, o.trusted(roots)...)
	}
	return s, nil
}

// trusted is how a trust file names the authority: once for each root.
func (o *Outside) trusted(roots []*x509.Certificate) []verify.Authority {
	var list []verify.Authority
	for _, root := range roots {
		a := verify.Authority{Name: o.Name, Certificate: root.Raw, Clock: verify.Independent}
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

// Stamp implements ledger.Stamper: every authority is asked, all at the same time, and each has to answer.
func (s *stampers) Stamp(ctx context.Context, imprint [32]byte) ([][]byte, error) {
	tokens, err := s.own.Stamp(ctx, imprint)
	if err != nil {
		return nil, err
	}
	got, errs := make([][]byte, len(s.clients)), make([]error, len(s.clients))
	var wg sync.WaitGroup
	for i, client := range s.clients {
		wg.Go(func() { got[i], errs[i] = client.Stamp(ctx, imprint) })
	}
	wg.Wait()
	return slices.Concat(tokens, got), errors.Join(errs...)
}

// Package eutrust takes time-stamping authorities for a trust file from the EU's trusted lists, and fetches these lists. From the
// same lists, certificates and options it takes the same authorities.
package eutrust

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/kit/atomicfile"
	"jurat/verify/eulist"
	"jurat/verify/trust"
)

// Options say what to take.
type Options struct {
	Journal      eulist.Signers // required: of the certificates in the Official Journal
	Territories  []string       // only these; empty: all
	GrantedSince time.Time      // only services that were granted then or later; zero: all that ever were
}

// Derived is what the lists give, and what was left out of it.
type Derived struct {
	Authorities []trust.Authority
	Lists       *trust.Lists
	NextUpdate  map[string]time.Time // by territory, of the lists that say when a newer one is due
	Notes       []string
}

// Journal reads the certificates of a publication in the Official Journal: certificates in PEM, or their SHA-256 in
// hexadecimal, one a line. It refuses another PEM block, another line, and a text without any certificate.
func Journal(text []byte) (signers eulist.Signers, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %q, want certificates alone", block.Type)
		}
		signers, text = append(signers, sha256.Sum256(block.Bytes)), rest
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.ReplaceAll(strings.TrimSpace(line), ":", ""); line == "" {
			continue
		}
		digest, err := evidence.ParseDigest("sha256:" + strings.ToLower(strings.TrimPrefix(line, "sha256")))
		if err != nil {
			return nil, fmt.Errorf("%q is neither a certificate in PEM nor the SHA-256 of one", line)
		}
		signers = append(signers, digest)
	}
	if len(signers) == 0 {
		return nil, errors.New("it holds no certificate")
	}
	return signers, nil
}

// maxFiles bounds what a folder may hold: the lists of 31 territories, each in many versions.
const maxFiles = 2000

// Files are the lists of a folder, none of them verified, newest first.
type Files struct {
	lists []*eulist.Unverified
	Notes []string // of files that are no lists
}

// Read reads all lists of a folder: its files whose names end in .xml. A list that cannot be parsed is a note. It
// returns an error for too many lists, and for a file that cannot be read or is too large.
func Read(folder fs.FS) (*Files, error) {
	names, err := fs.Glob(folder, "*.xml")
	if err != nil {
		return nil, err
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("the folder holds %d lists, more than %d", len(names), maxFiles)
	}
	f := new(Files)
	for _, name := range names {
		raw, err := readFile(folder, name)
		if err != nil {
			return nil, err
		}
		list, err := eulist.Parse(raw)
		if err != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: %v", path.Base(name), err))
			continue
		}
		f.lists = append(f.lists, list)
	}
	slices.SortFunc(f.lists, func(a, b *eulist.Unverified) int {
		x, y := a.UnverifiedInfo(), b.UnverifiedInfo()
		return cmp.Or(-cmp.Compare(x.Sequence, y.Sequence), bytes.Compare(x.Digest[:], y.Digest[:]))
	})
	return f, nil
}

func readFile(folder fs.FS, name string) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, eulist.MaxSize+1)) // of what is larger, Parse says so
}

// of are the lists that claim a type and, if it is not empty, a territory.
func (f *Files) of(kind, territory string) (lists []*eulist.Unverified) {
	for _, l := range f.lists {
		if info := l.UnverifiedInfo(); info.Type == kind && (territory == "" || info.Territory == territory) {
			lists = append(lists, l)
		}
	}
	return lists
}

// Derive verifies the newest list of the lists, and under it the newest list of each territory, and takes their services of qualified time stamps.
// A list that does not hold is passed over for an older one, and noted.
func (f *Files) Derive(o Options) (*Derived, error) {
	d := &Derived{Notes: slices.Clone(f.Notes), NextUpdate: map[string]time.Time{}}
	lotl, err := f.listOfLists(o.Journal, d)
	if err != nil {
		return nil, err
	}
	national, err := f.nationals(lotl, o.Territories, d)
	if err != nil {
		return nil, err
	}
	d.Lists = &trust.Lists{LOTL: version(lotl), Issued: lotl.Issued, Territories: sorted(o.Territories, strings.Compare), GrantedSince: o.GrantedSince}
	for _, certificate := range sorted(o.Journal, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) }) {
		d.Lists.Journal = append(d.Lists.Journal, evidence.Digest(certificate))
	}
	for _, list := range append([]*eulist.List{lotl}, national...) {
		if !list.NextUpdate.IsZero() {
			d.NextUpdate[list.Territory] = list.NextUpdate
		}
	}
	for _, list := range national {
		d.take(list, o.GrantedSince)
	}
	slices.SortStableFunc(d.Authorities, func(a, b trust.Authority) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Certificate, b.Certificate))
	})
	return d, nil
}

// nationals returns the newest list that holds of each territory. Of a territory that is asked for, there must be one.
func (f *Files) nationals(lotl *eulist.List, asked []string, d *Derived) (lists []*eulist.List, err error) {
	for _, territory := range sorted(asked, strings.Compare) {
		if len(lotl.Signers(territory)) == 0 {
			return nil, fmt.Errorf("the list of the lists names no list of %q", territory)
		}
	}
	var missing []string
	for _, territory := range lotl.Territories() {
		if len(asked) > 0 && !slices.Contains(asked, territory) {
			continue
		}
		switch list := f.national(territory, lotl, d); {
		case list != nil:
			lists = append(lists, list)
		case len(asked) > 0:
			return nil, fmt.Errorf("the folder has no list of %s that holds%s", territory, because(d.Notes))
		default:
			missing = append(missing, territory)
		}
	}
	if len(missing) > 0 {
		d.note("the folder has no list that holds of %s", strings.Join(missing, ", "))
	}
	return lists, nil
}

func because(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(notes, "; ")
}

// sorted returns a list as a trust file has it: sorted, nothing twice.
func sorted[T comparable](list []T, order func(a, b T) int) []T {
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	return slices.Compact(list)
}

// version returns which issue of a list this is, as a trust file has it.
func version(l *eulist.List) trust.ListVersion {
	return trust.ListVersion{Sequence: l.Sequence, Digest: evidence.Digest(l.Digest)}
}

func (d *Derived) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

func (f *Files) listOfLists(journal eulist.Signers, d *Derived) (*eulist.List, error) {
	all := f.of(eulist.ListOfLists, "")
	var newest error
	for _, l := range all {
		list, err := eulist.Chain(journal, all, l)
		if err == nil {
			return list, nil
		}
		d.note("list of the lists %d: %v", l.UnverifiedInfo().Sequence, err)
		newest = cmp.Or(newest, err)
	}
	return nil, cmp.Or(newest, errors.New("the folder holds no list of the lists"))
}

// national is the newest list of a territory that holds, or nil.
func (f *Files) national(territory string, lotl *eulist.List, d *Derived) *eulist.List {
	for _, l := range f.of(eulist.NationalList, territory) {
		list, err := l.Verify(lotl.Signers(territory))
		if err == nil {
			return list
		}
		d.note("%v", err)
	}
	return nil
}

// take takes the services of one list.
func (d *Derived) take(l *eulist.List, since time.Time) {
	for _, s := range l.Of(trust.QualifiedTimeStamps) {
		if !grantedSince(&s, since) {
			continue
		}
		service, err := asService(&s, l)
		if err != nil {
			d.note("%s: a service is left out: %v", l.Territory, err)
			continue
		}
		if s.Unreadable > 0 {
			d.note("%s: %d certificates cannot be read", label(&service), s.Unreadable)
		}
		for _, certificate := range s.Certificates {
			d.add(certificate, service)
		}
	}
}

// label names an authority by its service.
func label(s *trust.Service) string { return fmt.Sprintf("%s %s: %s", s.Territory, s.TSP[0], s.Name) }

// grantedSince reports whether a service was a qualified one at or after a moment.
func grantedSince(s *eulist.Service, since time.Time) bool {
	if since.Before(trust.QualifiedFrom) {
		since = trust.QualifiedFrom
	}
	for i, state := range s.States {
		if state.Type == trust.QualifiedTimeStamps && state.Status == trust.Granted && (i == 0 || s.States[i-1].From.After(since)) {
			return true
		}
	}
	return false
}

// add adds an authority, or a service to the one that has the certificate.
func (d *Derived) add(certificate []byte, service trust.Service) {
	if _, err := x509.ParseCertificate(certificate); err != nil {
		d.note("%s: a certificate is left out: %v", label(&service), err)
		return
	}
	if i := d.find(certificate); i >= 0 {
		d.Authorities[i].Services = append(d.Authorities[i].Services, service)
		return
	}
	made := trust.Authority{Name: label(&service), Certificate: certificate, Clock: trust.Independent, Services: []trust.Service{service}}
	d.Authorities = append(d.Authorities, made)
}

// asService is what a trust file says of a service: all that its list says of its past.
func asService(s *eulist.Service, l *eulist.List) (service trust.Service, err error) {
	if err := s.CheckHistory(); err != nil {
		return service, err
	}
	if len(s.Providers) == 0 || len(s.States[0].Names) == 0 {
		return service, errors.New("it has no name")
	}
	service = trust.Service{Territory: s.Territory, TSP: s.Providers, Name: s.States[0].Names[0], Type: trust.QualifiedTimeStamps,
		List: trust.ServiceList{ListVersion: version(l), Issued: l.Issued, NextUpdate: l.NextUpdate}}
	for _, state := range s.States {
		if state.Critical != "" {
			return service, fmt.Errorf("it has the critical extension %s, which is not known here", state.Critical)
		}
		status := trust.ServiceStatus{From: state.From, Status: state.Status}
		if state.Type != service.Type {
			status.Type = state.Type
		}
		service.Status = append(service.Status, status)
	}
	return service, nil
}

// Into puts what was derived into a trust file, in the place of what was derived before. An authority that the reader had named keeps its
// name and what the reader believes of it, and gets its services.
func (d *Derived) Into(file *trust.Trust) {
	file.Lists = d.Lists
	var kept []trust.Authority
	for _, a := range file.Authorities {
		wasDerived := len(a.Services) > 0 && a.Name == label(&a.Services[0])
		i := d.find(a.Certificate)
		if a.Services = nil; i >= 0 {
			a.Services = d.Authorities[i].Services
		}
		if i >= 0 || !wasDerived {
			kept = append(kept, a)
		}
	}
	for _, a := range d.Authorities {
		if !slices.ContainsFunc(kept, func(b trust.Authority) bool { return bytes.Equal(a.Certificate, b.Certificate) }) {
			kept = append(kept, a)
		}
	}
	file.Authorities = kept
}

// find is the place of the authority with a certificate; -1 if there is none.
func (d *Derived) find(certificate []byte) int {
	return slices.IndexFunc(d.Authorities, func(a trust.Authority) bool { return bytes.Equal(a.Certificate, certificate) })
}

// Check holds a trust file against what was derived anew, and returns in what they differ.
func (d *Derived) Check(file *trust.Trust) (differences []string) {
	if !same(file.Lists, d.Lists) {
		differences = append(differences, "the list of the lists is another, or was issued at another time")
	}
	var seen int
	for _, a := range file.Authorities {
		i := d.find(a.Certificate)
		switch {
		case i >= 0:
			seen++
			if !same(a.Services, d.Authorities[i].Services) {
				differences = append(differences, fmt.Sprintf("%s: the lists say something else of it", a.Name))
			}
		case len(a.Services) > 0:
			differences = append(differences, fmt.Sprintf("%s: the lists do not have it", a.Name))
		}
	}
	if missing := len(d.Authorities) - seen; missing > 0 {
		differences = append(differences, fmt.Sprintf("%d authorities of the lists are not in the trust file", missing))
	}
	return differences
}

// same compares as files do: times that are written alike are the same.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Overdue says of which lists a newer one should be there at a moment.
func (d *Derived) Overdue(now time.Time) (notes []string) {
	for _, territory := range slices.Sorted(maps.Keys(d.NextUpdate)) {
		if due := d.NextUpdate[territory]; now.After(due) {
			notes = append(notes, fmt.Sprintf("the list of %s is out of date: a newer one was due on %s", territory, due.Format(time.DateOnly)))
		}
	}
	return notes
}

// ListOfLists is where the EU publishes its list of the lists.
const ListOfLists = "https://ec.europa.eu/tools/lotl/eu-lotl.xml"

// A Fetcher brings lists into a folder. It asks only for what the list of the lists names, once that is verified, and for its pivots, where it
// comes from itself. It keeps what holds, each version in a file of its own.
type Fetcher struct {
	Journal     eulist.Signers    // required
	Folder      string            // required
	ListOfLists string            // empty: where the EU publishes it
	Territories []string          // only their lists; empty: all
	HTTP        *http.Client      // nil: one that waits a minute
	Note        func(text string) // required: what was kept, and what not
}

const (
	fetchTimeout = time.Minute
	maxRedirects = 5
)

// Fetch fetches. A list that cannot be had, or does not hold, keeps no other from being fetched, and is an error at the end.
func (f *Fetcher) Fetch(ctx context.Context) error {
	f.ListOfLists = cmp.Or(f.ListOfLists, ListOfLists)
	lotl, err := f.listOfLists(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range lotl.Pointers {
		if p.Type != eulist.NationalList || !strings.EqualFold(p.MIME, eulist.XML) || len(f.Territories) > 0 && !slices.Contains(f.Territories, p.Territory) {
			continue
		}
		if err := f.national(ctx, p, lotl); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.Territory, err))
		}
	}
	return errors.Join(failed...)
}

// listOfLists fetches the list of the lists with the pivots that the folder lacks.
func (f *Fetcher) listOfLists(ctx context.Context) (*eulist.List, error) {
	raw, list, err := f.get(ctx, f.ListOfLists)
	if err != nil {
		return nil, err
	}
	files, err := Read(os.DirFS(f.Folder))
	if err != nil {
		return nil, err
	}
	pivots := files.of(eulist.ListOfLists, "")
	for number, location := range list.Pivots() {
		if slices.ContainsFunc(pivots, func(p *eulist.Unverified) bool { return p.UnverifiedInfo().Sequence == number }) || !sameHost(location, f.ListOfLists) {
			continue
		}
		rawPivot, pivot, err := f.get(ctx, location)
		if err != nil {
			f.Note(fmt.Sprintf("pivot %d: %v", number, err)) // it is needed only if nothing newer has been published in the Official Journal
			continue
		}
		pivots = append(pivots, pivot)
		if err := f.keep(pivot, rawPivot); err != nil {
			return nil, err
		}
	}
	verified, err := eulist.Chain(f.Journal, pivots, list)
	if err != nil {
		return nil, err
	}
	return verified, f.keep(list, raw)
}

func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host
}

func (f *Fetcher) national(ctx context.Context, p eulist.Pointer, lotl *eulist.List) error {
	raw, list, err := f.get(ctx, p.Location)
	if err != nil {
		return err
	}
	verified, err := list.Verify(lotl.Signers(p.Territory))
	if err != nil {
		return err
	}
	if verified.Territory != p.Territory {
		return fmt.Errorf("%s: it is the list of %s", p.Location, verified.Territory)
	}
	return f.keep(list, raw)
}

// keep writes a list to a file that is named by its digest: a version that is there stays.
func (f *Fetcher) keep(list *eulist.Unverified, raw []byte) error {
	info := list.UnverifiedInfo()
	if len(info.Territory) != 2 || strings.Trim(info.Territory, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("%q is no territory", info.Territory)
	}
	name := fmt.Sprintf("%s-%d-%x.xml", info.Territory, info.Sequence, info.Digest[:6])
	err := atomicfile.Create(filepath.Join(f.Folder, name), raw, 0o644)
	if errors.Is(err, os.ErrExist) {
		f.Note(name + " is there already")
		return nil
	}
	if err == nil {
		f.Note(name + " was fetched")
	}
	return err
}

// get asks for a list over https alone, also where it is sent elsewhere.
func (f *Fetcher) get(ctx context.Context, location string) ([]byte, *eulist.Unverified, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	if request.URL.Scheme != "https" {
		return nil, nil, fmt.Errorf("%s: only https is asked; fetch it yourself, and put it into the folder", location)
	}
	response, err := f.client().Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s: status %s", location, response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, eulist.MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", location, err)
	}
	list, err := eulist.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", location, err)
	}
	return raw, list, nil
}

func (f *Fetcher) client() *http.Client {
	client := http.Client{Timeout: fetchTimeout}
	if f.HTTP != nil {
		client = *f.HTTP
	}
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if request.URL.Scheme != "https" || len(via) > maxRedirects {
			return fmt.Errorf("it sends to %s, which is not followed", request.URL)
		}
		return nil
	}
	return &client
}

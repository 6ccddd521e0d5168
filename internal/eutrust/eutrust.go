// Package eutrust takes time-stamping authorities for a trust file from the EU's trusted lists, and fetches these lists. From the
// same lists, certificates and options it takes the same authorities.
package eutrust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/trustlist"
	"jurat/verify/trust"
)

// Options say what to take.
type Options struct {
	Journal      trustlist.Signers // required: of the certificates in the Official Journal
	Territories  []string          // only these; empty: all
	GrantedSince time.Time         // only services that were granted then or later; zero: all that ever were
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
func Journal(text []byte) (signers trustlist.Signers, err error) {
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
	lists []*trustlist.Unverified
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
		list, err := trustlist.Parse(raw)
		if err != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("%s: %v", path.Base(name), err))
			continue
		}
		f.lists = append(f.lists, list)
	}
	f.sort()
	return f, nil
}

func readFile(folder fs.FS, name string) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, trustlist.MaxSize+1)) // of what is larger, Parse says so
}

func (f *Files) sort() {
	slices.SortFunc(f.lists, func(a, b *trustlist.Unverified) int {
		x, y := a.UnverifiedInfo(), b.UnverifiedInfo()
		return cmp.Or(-cmp.Compare(x.Sequence, y.Sequence), bytes.Compare(x.Digest[:], y.Digest[:]))
	})
}

// of are the lists that claim a type and, if it is not empty, a territory.
func (f *Files) of(kind, territory string) (lists []*trustlist.Unverified) {
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
	d.Lists = &trust.Lists{Journal: journalDigests(o.Journal), LOTL: version(lotl), Issued: lotl.Issued, Territories: sorted(o.Territories), GrantedSince: o.GrantedSince}
	for _, list := range append([]*trustlist.List{lotl}, national...) {
		if !list.NextUpdate.IsZero() {
			d.NextUpdate[list.Territory] = list.NextUpdate
		}
	}
	for _, list := range national {
		d.take(list, o.GrantedSince)
	}
	d.sort()
	return d, nil
}

// nationals returns the newest list that holds of each territory. Of a territory that is asked for, there must be one.
func (f *Files) nationals(lotl *trustlist.List, asked []string, d *Derived) (lists []*trustlist.List, err error) {
	for _, territory := range sorted(asked) {
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

// journalDigests returns the digests of the certificates in the Official Journal as a trust file has them: sorted, none twice.
func journalDigests(journal trustlist.Signers) (list []evidence.Digest) {
	for _, certificate := range journal {
		list = append(list, evidence.Digest(certificate))
	}
	slices.SortFunc(list, func(a, b evidence.Digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

func because(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(notes, "; ")
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// version returns which issue of a list this is, as a trust file has it.
func version(l *trustlist.List) trust.ListVersion {
	return trust.ListVersion{Sequence: l.Sequence, Digest: evidence.Digest(l.Digest)}
}

func (d *Derived) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

func (f *Files) listOfLists(journal trustlist.Signers, d *Derived) (*trustlist.List, error) {
	all := f.of(trustlist.ListOfLists, "")
	var newest error
	for _, l := range all {
		list, err := trustlist.Chain(journal, all, l)
		if err == nil {
			return list, nil
		}
		d.note("list of the lists %d: %v", l.UnverifiedInfo().Sequence, err)
		newest = cmp.Or(newest, err)
	}
	return nil, cmp.Or(newest, errors.New("the folder holds no list of the lists"))
}

// national is the newest list of a territory that holds, or nil.
func (f *Files) national(territory string, lotl *trustlist.List, d *Derived) *trustlist.List {
	for _, l := range f.of(trustlist.NationalList, territory) {
		list, err := l.Verify(lotl.Signers(territory))
		if err == nil {
			return list
		}
		d.note("%v", err)
	}
	return nil
}

// take takes the services of one list.
func (d *Derived) take(l *trustlist.List, since time.Time) {
	for _, s := range l.Of(trustlist.QualifiedTimeStamps) {
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
func grantedSince(s *trustlist.Service, since time.Time) bool {
	if since.Before(trustlist.QualifiedFrom) {
		since = trustlist.QualifiedFrom
	}
	for i, state := range s.States {
		if state.Type == trustlist.QualifiedTimeStamps && state.Status == trustlist.Granted && (i == 0 || s.States[i-1].From.After(since)) {
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
	d.Authorities = append(d.Authorities, trust.Authority{Name: label(&service), Certificate: certificate, Clock: trust.Independent, Services: []trust.Service{service}})
}

// asService is what a trust file says of a service: all that its list says of its past.
func asService(s *trustlist.Service, l *trustlist.List) (service trust.Service, err error) {
	if _, err := s.At(trustlist.QualifiedFrom); errors.Is(err, trustlist.ErrHistory) {
		return service, err
	}
	if len(s.Providers) == 0 || len(s.States[0].Names) == 0 {
		return service, errors.New("it has no name")
	}
	service = trust.Service{Territory: s.Territory, TSP: s.Providers, Name: s.States[0].Names[0], Type: trustlist.QualifiedTimeStamps,
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

func (d *Derived) sort() {
	slices.SortStableFunc(d.Authorities, func(a, b trust.Authority) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Certificate, b.Certificate))
	})
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

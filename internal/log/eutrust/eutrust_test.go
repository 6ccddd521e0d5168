package eutrust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/listtest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/eulist"
	"jurat/verify/trust"
)

const (
	withdrawn = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn"
	decoy     = "http://uri.etsi.org/TrstSvc/Svctype/TSA/TSS-QC"
	home      = "https://lists.example/"
)

// A union is a list of the lists, the lists of two territories, and their signers.
type union struct {
	journal, operator *listtest.Signer
	lotl, xa, xb      *listtest.List
}

// newUnion makes one qualified service in XA, whose certificate is the root of the authority that stamps jurattest's
// records, and one in XB.
func newUnion(t testing.TB) *union {
	u := &union{journal: listtest.NewSigner(t, "journal"), operator: listtest.NewSigner(t, "operator")}
	pointer := func(territory string) listtest.Pointer {
		return listtest.Pointer{Location: home + territory + ".xml", Type: eulist.NationalList, Territory: territory, Signers: []*listtest.Signer{u.operator}}
	}
	u.lotl = &listtest.List{Type: eulist.ListOfLists, Territory: "EU", Sequence: 5, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z",
		URIs: []string{home + "journal"}, Pointers: []listtest.Pointer{pointer("XA"), pointer("XB")}}
	national := func(territory, tsp string, certificate []byte, states ...listtest.State) *listtest.List {
		return &listtest.List{Type: eulist.NationalList, Territory: territory, Sequence: 7, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z", URIs: []string{home},
			Services: []listtest.Service{{TSP: tsp, Name: "stamps", Type: trust.QualifiedTimeStamps, Certificates: [][]byte{certificate}, States: states}}}
	}
	u.xa = national("XA", "Alpha", stamper(t), listtest.State{Status: withdrawn, From: "2026-03-01T00:00:00Z"}, listtest.State{Status: trust.Granted, From: "2017-01-01T00:00:00Z"})
	u.xb = national("XB", "Beta", listtest.NewSigner(t, "beta").Certificate, listtest.State{Status: trust.Granted, From: "2020-01-01T00:00:00Z"})
	return u
}

// stamper returns the certificate of an authority that has no server.
func stamper(t testing.TB) []byte {
	certificates := jurattest.Authority(t, "stranger", jurattest.Start).Certificates()
	return certificates[len(certificates)-1].Raw
}

func (u *union) files(t testing.TB) fstest.MapFS {
	return fstest.MapFS{"a.xml": {Data: u.lotl.Sign(t, u.journal)}, "b.xml": {Data: u.xa.Sign(t, u.operator)}, "c.xml": {Data: u.xb.Sign(t, u.operator)}, "readme.txt": {Data: []byte("no list")}}
}

func (u *union) options() Options {
	return Options{Journal: eulist.Signers{sha256.Sum256(u.journal.Certificate)}}
}

func derive(t testing.TB, files fstest.MapFS, o Options) *Derived {
	t.Helper()
	read := must.Get(Read(files))(t)
	return must.Get(read.Derive(o))(t)
}

func named(d *Derived) (names []string) {
	for _, a := range d.Authorities {
		names = append(names, a.Name)
	}
	return names
}

func trustOf(t testing.TB, d *Derived) *trust.Trust {
	t.Helper()
	file := &trust.Trust{Format: trust.Format}
	d.Into(file)
	doc, err := file.Marshal()
	must.Do(t, err)
	file, err = trust.Parse(doc)
	must.Need(t, err == nil, "%v\n%s", err, doc)
	return file
}

// TestDerive: the trust file has the services of the lists, and the same lists give the same file in any order.
func TestDerive(t *testing.T) {
	u := newUnion(t)
	files := u.files(t)
	d := derive(t, files, u.options())
	diff := cmp.Diff([]string{"XA Alpha: stamps", "XB Beta: stamps"}, named(d))
	must.Hold(t, diff == "" && len(d.Notes) == 0, "%s, %q", diff, d.Notes)
	file := trustOf(t, d)
	want := trust.Service{Territory: "XA", TSP: []string{"Alpha"}, Name: "stamps", Type: trust.QualifiedTimeStamps,
		Status: []trust.ServiceStatus{{From: at("2026-03-01T00:00:00Z"), Status: withdrawn}, {From: at("2017-01-01T00:00:00Z"), Status: trust.Granted}},
		List:   trust.ServiceList{ListVersion: trust.ListVersion{Sequence: 7, Digest: evidence.DigestOf(files["b.xml"].Data)}, Issued: at("2026-05-01T00:00:00Z"), NextUpdate: at("2026-10-01T00:00:00Z")}}
	must.Equal(t, cmp.Diff([]trust.Service{want}, file.Authorities[0].Services), "")
	others := fstest.MapFS{"1.xml": files["c.xml"], "2.xml": files["a.xml"], "3.xml": files["b.xml"]}
	one, err := file.Fingerprint()
	two, errTwo := trustOf(t, derive(t, others, u.options())).Fingerprint()
	must.Hold(t, err == nil && errTwo == nil && one == two, "the same lists gave two fingerprints: %v, %v", one, two)
	differences := derive(t, others, u.options()).Check(file)
	must.Hold(t, len(differences) <= 0, "%v", differences)
	notes := d.Overdue(at("2026-10-01T00:00:01Z"))
	must.Hold(t, len(notes) == 3 && len(d.Overdue(at("2026-10-01T00:00:00Z"))) == 0, "%q", notes)
}

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

// TestDeriveLeavesOut: a service that is not a qualified time-stamping service, or that cannot be understood, gives no
// authority. A note says why if a reader could miss it.
func TestDeriveLeavesOut(t *testing.T) {
	tsu := func(name string) []byte { return listtest.NewSigner(t, name).Certificate }
	granted := []listtest.State{{Status: trust.Granted, From: "2020-01-01T00:00:00Z"}}
	for _, tt := range []struct {
		name   string
		change func(u *union, o *Options)
		want   []string
		note   string
	}{
		{"a decoy", func(u *union, o *Options) { u.xb.Services[0].Type = decoy }, []string{"XA Alpha: stamps"}, ""},
		{"never granted", func(u *union, o *Options) { u.xb.Services[0].States[0].Status = withdrawn }, []string{"XA Alpha: stamps"}, ""},
		{"granted until the Regulation", func(u *union, o *Options) {
			u.xb.Services[0].States = []listtest.State{{Status: withdrawn, From: "2016-06-30T22:00:00Z"}, {Status: trust.Granted, From: "2010-01-01T00:00:00Z"}}
		}, []string{"XA Alpha: stamps"}, ""},
		{"granted a second longer", func(u *union, o *Options) {
			u.xb.Services[0].States = []listtest.State{{Status: withdrawn, From: "2016-06-30T22:00:01Z"}, {Status: trust.Granted, From: "2010-01-01T00:00:00Z"}}
		}, []string{"XA Alpha: stamps", "XB Beta: stamps"}, ""},
		{"not granted since", func(u *union, o *Options) { o.GrantedSince = at("2026-03-01T00:00:00Z") }, []string{"XB Beta: stamps"}, ""},
		{"granted since", func(u *union, o *Options) { o.GrantedSince = at("2026-02-28T23:59:59Z") }, []string{"XA Alpha: stamps", "XB Beta: stamps"}, ""},
		{"one territory", func(u *union, o *Options) { o.Territories = []string{"XB"} }, []string{"XB Beta: stamps"}, ""},
		{"a history out of order", func(u *union, o *Options) { slices.Reverse(u.xa.Services[0].States) }, []string{"XB Beta: stamps"}, "not in order"},
		{"a critical extension", func(u *union, o *Options) {
			u.xb.Services[0].Extension = `<Extension Critical="true"><x:New xmlns:x="urn:x"></x:New></Extension>`
		}, []string{"XA Alpha: stamps"}, "New"},
		{"a certificate that is none", func(u *union, o *Options) { u.xb.Services[0].Certificates[0] = []byte("none") }, []string{"XA Alpha: stamps"}, "certificate is left out"},
		{"a certificate that is none beside a good one", func(u *union, o *Options) {
			u.xb.Services[0].Certificates = append(u.xb.Services[0].Certificates, []byte("none"))
		}, []string{"XA Alpha: stamps", "XB Beta: stamps"}, "certificate is left out"},
		{"two services with one certificate", func(u *union, o *Options) {
			u.xb.Services = append(u.xb.Services, listtest.Service{TSP: "Gamma", Name: "too", Type: trust.QualifiedTimeStamps, Certificates: u.xb.Services[0].Certificates, States: granted})
		}, []string{"XA Alpha: stamps", "XB Beta: stamps"}, ""},
		{"two services", func(u *union, o *Options) {
			u.xb.Services = append(u.xb.Services, listtest.Service{TSP: "Gamma", Name: "too", Type: trust.QualifiedTimeStamps, Certificates: [][]byte{tsu("gamma")}, States: granted})
		}, []string{"XA Alpha: stamps", "XB Beta: stamps", "XB Gamma: too"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUnion(t)
			o := u.options()
			tt.change(u, &o)
			d := derive(t, u.files(t), o)
			trustOf(t, d)
			diff := cmp.Diff(tt.want, named(d))
			must.Hold(t, diff == "" && (tt.note != "") == (len(d.Notes) > 0) && strings.Contains(fmt.Sprint(d.Notes), tt.note), "%s, %q", diff, d.Notes)
		})
	}
}

// TestDeriveTakesTheNewestThatHolds: a forged list is ignored, and a note names a missing one.
func TestDeriveTakesTheNewestThatHolds(t *testing.T) {
	u := newUnion(t)
	forger := listtest.NewSigner(t, "forger")
	files := u.files(t)
	for name, list := range map[string]*listtest.List{"d.xml": u.lotl, "e.xml": u.xa} {
		list.Sequence += 100
		files[name] = &fstest.MapFile{Data: list.Sign(t, forger)}
	}
	files["f.xml"] = &fstest.MapFile{Data: []byte("<a/>")}
	d := derive(t, files, u.options())
	if len(d.Authorities) != 2 || d.Lists.LOTL.Sequence != 5 || len(d.Notes) != 3 {
		t.Errorf("%v, %d, %q", named(d), d.Lists.LOTL.Sequence, d.Notes)
	}
	delete(files, "c.xml")
	if d = derive(t, files, u.options()); len(d.Authorities) != 1 || !strings.Contains(fmt.Sprint(d.Notes), "XB") {
		t.Errorf("%v, %q", named(d), d.Notes)
	}
	read := must.Get(Read(files))(t)
	for _, territory := range []string{"XB", "XC"} {
		must.Refuse(t, territory)(read.Derive(Options{Journal: u.options().Journal, Territories: []string{territory}}))
	}
	u.lotl.Pointers[1].Signers = []*listtest.Signer{forger}
	if d = derive(t, u.files(t), u.options()); len(d.Authorities) != 1 {
		t.Errorf("a list was accepted from a signer that the list of the lists does not name: %v", named(d))
	}
	must.Refuse(t, "", "without certificates")(read.Derive(Options{}))
}

// TestInto: Into keeps the authorities that the reader named, and removes those of an earlier derivation.
func TestInto(t *testing.T) {
	u := newUnion(t)
	d := derive(t, u.files(t), u.options())
	own := trust.Authority{Name: "mine", Certificate: d.Authorities[0].Certificate, Clock: trust.OperatorClock}
	file := &trust.Trust{Authorities: []trust.Authority{own}}
	d.Into(file)
	d.Into(file)
	if len(file.Authorities) != 2 || file.Authorities[0].Name != "mine" || file.Authorities[0].Clock != trust.OperatorClock || len(file.Authorities[0].Services) != 1 {
		t.Errorf("%+v", file.Authorities)
	}
	d.Authorities = nil
	d.Into(file)
	diff := cmp.Diff([]trust.Authority{own}, file.Authorities, cmp.Comparer(func(a, b trust.Authority) bool { return same(a, b) }))
	must.Hold(t, diff == "", "%v", diff)
}

// TestCheck: Check finds each kind of difference between a trust file and the lists.
func TestCheck(t *testing.T) {
	u := newUnion(t)
	d := derive(t, u.files(t), u.options())
	for name, change := range map[string]func(file *trust.Trust){
		"another list of the lists": func(file *trust.Trust) { file.Lists.LOTL.Sequence++ },
		"another status":            func(file *trust.Trust) { file.Authorities[0].Services[0].Status[0].Status = trust.Granted },
		"one more": func(file *trust.Trust) {
			file.Authorities[0].Certificate = listtest.NewSigner(t, "other").Certificate
		},
		"one less":    func(file *trust.Trust) { file.Authorities = file.Authorities[1:] },
		"no services": func(file *trust.Trust) { file.Authorities[0].Services = nil },
	} {
		file := trustOf(t, d)
		differences := d.Check(file)
		must.Need(t, len(differences) <= 0, "%v", differences)
		if change(file); len(d.Check(file)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

// TestDerivedTrustProvesTime: the derived trust file proves the time of a record that a listed authority stamped. The
// list may have the authority's own certificate or that of its CA.
func TestDerivedTrustProvesTime(t *testing.T) {
	for i, certificate := range jurattest.Authority(t, "", jurattest.Start).Certificates() {
		u := newUnion(t)
		u.xa.Services[0].Certificates = [][]byte{certificate.Raw}
		house := jurattest.NewForStrangers(t)
		record := house.Seal(t, evidence.Payload{AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
			Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{}`)})
		file := house.Trust(t)
		file.Authorities = nil
		must.Need(t, verify.Record(record, verify.Options{Trust: file}).Of(verify.Time).Status != verify.Proved, "time is proved without an authority")
		derive(t, u.files(t), u.options()).Into(file)
		report := verify.Record(record, verify.Options{Trust: file})
		if report.Of(verify.Time).Status != verify.Proved || report.Times[0].Authority != "XA Alpha: stamps" || report.Times[0].Clock != trust.Independent {
			t.Errorf("certificate %d: %+v, %+v", i, report.Of(verify.Time), report.Times)
		}
	}
}

// TestJournal reads certificates and digests, and refuses everything else.
func TestJournal(t *testing.T) {
	signer := listtest.NewSigner(t, "journal")
	digest := sha256.Sum256(signer.Certificate)
	text := hex.EncodeToString(digest[:])
	colons := strings.TrimSuffix(strings.ToUpper(strings.Join(strings.SplitAfterN(text, "", 65), "")), ":")
	for _, good := range []string{string(signer.PEM()), text, " " + text + "\r\n", "sha256:" + text, colons, string(signer.PEM()) + text} {
		signers, err := Journal([]byte(good))
		must.Hold(t, err == nil && signers[0] == digest, "%s: %x, %v", good, signers, err)
	}
	for _, bad := range []string{"", "\n", text[1:], text + "0", "a certificate", strings.ReplaceAll(string(signer.PEM()), "CERTIFICATE", "PRIVATE KEY"), string(signer.PEM()) + "x"} {
		signers, err := Journal([]byte(bad))
		must.Hold(t, err != nil, "%s: %x", bad, signers)
	}
}

// TestRealProviders: published lists name the provider of a service as its certificates do, if the names that it trades under are counted; with
// few exceptions, which are then not qualified.
func TestRealProviders(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "..", "shared", "lists")
	oj, err := os.ReadFile(filepath.Join(folder, "oj-1.cert.pem"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no ../shared/lists: the tests on real lists are skipped")
	}
	must.Do(t, err)
	signers := must.Get(Journal(oj))(t)
	files := must.Get(Read(os.DirFS(folder)))(t)
	derived := must.Get(files.Derive(Options{Journal: signers, Territories: []string{"BE", "EE"}}))(t)
	agree, others := 0, map[string]int{}
	for _, a := range trustOf(t, derived).Authorities {
		certificate := must.Get(x509.ParseCertificate(a.Certificate))(t)
		for _, s := range a.Services {
			name := certificate.Subject.Organization[0]
			if slices.Contains(s.TSP, name) && slices.Equal(certificate.Subject.Country, []string{s.Territory}) {
				agree++
				continue
			}
			others[name]++
		}
	}
	diff := cmp.Diff(map[string]int{"GlobalSign nv-sa": 5, "QTSP: FPS Policy and Support - BOSA": 2, "Guardtime AS": 1}, others)
	must.Hold(t, agree == 26 && diff == "", "%d agree, others: %s", agree, diff)
}

// publisher serves the lists of a union over HTTPS.
func publisher(t *testing.T, u *union) (pages map[string]string, server *httptest.Server) {
	t.Helper()
	pages = map[string]string{}
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, there := pages[r.URL.Path]
		if to, redirected := strings.CutPrefix(page, "to "); redirected {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if !there {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(page)) //nolint:errcheck // the client sees what is missing
	}))
	t.Cleanup(server.Close)
	for i := range u.lotl.Pointers {
		u.lotl.Pointers[i].Location = server.URL + "/" + u.lotl.Pointers[i].Territory + ".xml"
	}
	pages["/XA.xml"], pages["/XB.xml"] = string(u.xa.Sign(t, u.operator)), string(u.xb.Sign(t, u.operator))
	return pages, server
}

func fetch(t *testing.T, u *union, server *httptest.Server, folder string, territories ...string) error {
	t.Helper()
	f := Fetcher{Journal: u.options().Journal, Folder: folder, ListOfLists: server.URL + "/eu.xml", Territories: territories, HTTP: server.Client(), Note: func(text string) { t.Log(text) }}
	return f.Fetch(t.Context())
}

func fetched(t *testing.T, folder string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(folder, "*")))(t)
}

// TestFetch: the files in a fetched folder give the same result as the lists, also with a pivot. A second fetch changes
// nothing.
func TestFetch(t *testing.T) {
	u, next := newUnion(t), listtest.NewSigner(t, "next")
	pages, server := publisher(t, u)
	pivot := *u.lotl
	pivot.Sequence, pivot.Pointers = 4, []listtest.Pointer{{Location: home, Type: eulist.ListOfLists, Territory: "EU", Signers: []*listtest.Signer{next}}}
	pages["/eu-pivot-4.xml"] = string(pivot.Sign(t, u.journal))
	u.lotl.URIs = []string{server.URL + "/eu-pivot-4.xml", home + "journal"}
	pages["/eu.xml"] = string(u.lotl.Sign(t, next))
	folder := t.TempDir()
	for range 2 {
		must.Do(t, fetch(t, u, server, folder))
		names := fetched(t, folder)
		must.Hold(t, len(names) == 4, "%q", names)
	}
	read := must.Get(Read(os.DirFS(folder)))(t)
	d, err := read.Derive(u.options())
	must.Hold(t, err == nil && len(d.Authorities) == 2 && len(d.Notes) <= 0, "%+v, %v", d, err)
}

// TestFetchKeepsWhatHolds: a list that cannot be fetched or verified gives an error and is not stored. The other lists
// are still fetched.
func TestFetchKeepsWhatHolds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(pages map[string]string, u *union)
		says   string
	}{
		{"missing", func(pages map[string]string, u *union) { delete(pages, "/XA.xml") }, "404"},
		{"forged", func(pages map[string]string, u *union) {
			pages["/XA.xml"] = string(u.xa.Sign(t, listtest.NewSigner(t, "forger")))
		}, "not signed by one of its signers"},
		{"of another territory", func(pages map[string]string, u *union) { pages["/XA.xml"] = pages["/XB.xml"] }, "list of XB"},
		{"too large", func(pages map[string]string, u *union) { pages["/XA.xml"] = strings.Repeat(" ", eulist.MaxSize+1) }, "more than"},
		{"sent to http", func(pages map[string]string, u *union) { pages["/XA.xml"] = "to http://127.0.0.1:1/XA.xml" }, "not followed"},
		{"sent in a circle", func(pages map[string]string, u *union) { pages["/XA.xml"] = "to /XA.xml" }, "not followed"},
		{"over http", func(pages map[string]string, u *union) { u.lotl.Pointers[0].Location = "http://127.0.0.1:1/XA.xml" }, "only https"},
		{"from a file", func(pages map[string]string, u *union) { u.lotl.Pointers[0].Location = "file:///etc/passwd" }, "only https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUnion(t)
			pages, server := publisher(t, u)
			tt.change(pages, u)
			pages["/eu.xml"] = string(u.lotl.Sign(t, u.journal))
			folder := t.TempDir()
			err := fetch(t, u, server, folder)
			must.Hold(t, err != nil && strings.Contains(err.Error(), tt.says) && strings.Contains(err.Error(), "XA"), "%v", err)
			names := fetched(t, folder)
			must.Hold(t, len(names) == 2, "%q", names)
			folder = t.TempDir()
			if err := fetch(t, u, server, folder, "XB"); err != nil || len(fetched(t, folder)) != 2 {
				t.Errorf("fetching XB alone: %v, %q", err, fetched(t, folder))
			}
		})
	}
}

// TestFetchBelievesNothing: if the list of the lists does not verify, Fetch stores nothing and follows none of its
// addresses.
func TestFetchBelievesNothing(t *testing.T) {
	u := newUnion(t)
	pages, server := publisher(t, u)
	asked := 0
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; inner.ServeHTTP(w, r) })
	u.lotl.URIs = []string{"https://elsewhere.invalid/eu-pivot-4.xml", home + "journal"} // no request goes to another host for pivots
	pages["/eu.xml"] = string(u.lotl.Sign(t, listtest.NewSigner(t, "forger")))
	folder := t.TempDir()
	err := fetch(t, u, server, folder)
	must.Hold(t, errors.Is(err, eulist.ErrChain) && asked == 1 && len(fetched(t, folder)) == 0, "%v, asked %d times", err, asked)
	err = fetch(t, u, server, filepath.Join(folder, "none"))
	must.Hold(t, !errors.Is(err, fs.ErrNotExist), "Fetch did not create the missing folder")
}

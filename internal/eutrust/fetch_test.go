package eutrust

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/listtest"
	"jurat/internal/must"
	"jurat/trustlist"
)

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
	pivot.Sequence, pivot.Pointers = 4, []listtest.Pointer{{Location: home, Type: trustlist.ListOfLists, Territory: "EU", Signers: []*listtest.Signer{next}}}
	pages["/eu-pivot-4.xml"] = string(pivot.Sign(t, u.journal))
	u.lotl.URIs = []string{server.URL + "/eu-pivot-4.xml", home + "journal"}
	pages["/eu.xml"] = string(u.lotl.Sign(t, next))
	folder := t.TempDir()
	for range 2 {
		must.Do(t, fetch(t, u, server, folder))
		if names := fetched(t, folder); len(names) != 4 {
			t.Errorf("%q", names)
		}
	}
	read := must.Get(Read(os.DirFS(folder)))(t)
	if d, err := read.Derive(u.options()); err != nil || len(d.Authorities) != 2 || len(d.Notes) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
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
		{"too large", func(pages map[string]string, u *union) { pages["/XA.xml"] = strings.Repeat(" ", trustlist.MaxSize+1) }, "more than"},
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
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "XA") {
				t.Errorf("%v", err)
			}
			if names := fetched(t, folder); len(names) != 2 {
				t.Errorf("%q", names)
			}
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
	if err := fetch(t, u, server, folder); !errors.Is(err, trustlist.ErrChain) || asked != 1 || len(fetched(t, folder)) != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if err := fetch(t, u, server, filepath.Join(folder, "none")); errors.Is(err, fs.ErrNotExist) {
		t.Error("Fetch did not create the missing folder")
	}
}

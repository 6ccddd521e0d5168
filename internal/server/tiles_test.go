package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/server"
	"jurat/tiles"
)

// reader is a client of a server's log.
func (r *running) reader(t testing.TB, token string) *tiles.Client {
	t.Helper()
	return must.Get(tiles.New(tiles.Config{URL: r.URL + "/log", Token: token}))(t)
}

// head opens the checkpoint that a server serves.
func (r *running) head(t testing.TB) operator.Checkpoint {
	t.Helper()
	signed := must.Get(r.reader(t, "").Checkpoint(t.Context()))(t)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	key := must.Get(note.NewVerifier(trust.Logs[0]))(t)
	return must.Get(operator.OpenCheckpoint(signed, key))(t)
}

// fill has an agent seal n more records.
func (r *running) fill(t testing.TB, token string, n int) {
	t.Helper()
	for i := range n {
		said := strings.Replace(action, "uuid", fmt.Sprint("request ", i), 1)
		post(t, r.URL+"/v1/records", said, bearer(token)...)
	}
}

// limitless removes the limit on requests.
func limitless(c *server.Config) { c.Limits = server.Rate{PerSecond: 1e6, Burst: 1e6} }

// TestTilesOfALog reads a log of more than one tile, as a stranger and as an auditor.
func TestTilesOfALog(t *testing.T) {
	r := start(t, limitless)
	agent, auditor := r.token(t, "logistics-agent-v1", access.Agent), r.token(t, "ada", access.Auditor)
	r.fill(t, agent, 280)
	head := r.head(t)
	if head.Size < 280 {
		t.Fatalf("%d records", head.Size)
	}
	var logged [][]byte
	for entry, err := range r.Installation.Ledger.Entries(t.Context(), 0, head.Size) {
		must.Do(t, err)
		logged = append(logged, entry)
	}
	read := int64(0)
	tree := r.reader(t, auditor).Tree(t.Context(), head)
	err := tree.Entries(0, head.Size, func(i int64, entry []byte) error {
		if i != read || !bytes.Equal(entry, logged[i]) {
			t.Errorf("entry %d: %d, %s", read, i, entry)
		}
		read++
		return nil
	})
	if err != nil || read != head.Size {
		t.Fatalf("%d of %d entries: %v", read, head.Size, err)
	}
	stranger := r.reader(t, "").Tree(t.Context(), head)
	proof := must.Get(stranger.ProveInclusion(200))(t)
	if err := tlog.CheckRecord(proof, head.Size, head.Root, 200, tlog.RecordHash(logged[200])); err != nil {
		t.Error(err)
	}
	if err := stranger.Entries(0, 1, func(int64, []byte) error { return nil }); !errors.Is(err, tiles.ErrRefused) {
		t.Errorf("a stranger reads entries: %v", err)
	}
}

// TestTilesAreForEver: answers have the media types and caching rules of the specification.
func TestTilesAreForEver(t *testing.T) {
	r := start(t, limitless)
	agent, auditor := r.token(t, "logistics-agent-v1", access.Agent), r.token(t, "ada", access.Auditor)
	r.fill(t, agent, 3)
	size := int(r.head(t).Size)
	for path, want := range map[string]struct{ media, kept string }{
		"/log/checkpoint":                                 {"text/plain; charset=utf-8", "no-cache"},
		fmt.Sprintf("/log/tile/0/000.p/%d", size):         {"application/octet-stream", "public, max-age=31536000, immutable"},
		fmt.Sprintf("/log/tile/entries/000.p/%d", size-1): {"application/octet-stream", "private, max-age=31536000, immutable"},
	} {
		answer, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", bearer(auditor)...)
		if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != want.media || answer.Header.Get("Cache-Control") != want.kept || doc == "" {
			t.Errorf("%s: %s %v", path, answer.Status, answer.Header)
		}
		again, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", append(bearer(auditor), "If-None-Match", answer.Header.Get("ETag"))...)
		if again.StatusCode != http.StatusNotModified || doc != "" {
			t.Errorf("%s, again: %s", path, again.Status)
		}
		head, doc := send(t, http.DefaultClient, "HEAD", r.URL+path, "", bearer(auditor)...)
		if head.StatusCode != 200 || doc != "" || head.ContentLength != answer.ContentLength {
			t.Errorf("%s, HEAD: %s, %d bytes", path, head.Status, head.ContentLength)
		}
	}
}

// TestTilesShowOnlyWhatIsSigned: tiles do not show records that no checkpoint covers yet.
func TestTilesShowOnlyWhatIsSigned(t *testing.T) {
	r := start(t, limitless)
	auditor := r.token(t, "ada", access.Auditor)
	signed := int(r.head(t).Size)
	r.token(t, "bob", access.Auditor) // an act of the operator that no checkpoint covers yet
	if size := int(r.size(t)); size <= signed {
		t.Fatalf("%d records, of which the checkpoint covers %d", size, signed)
	}
	ask := func(path string) *http.Response {
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/log/tile/"+path, "", bearer(auditor)...)
		return answer
	}
	for _, level := range []string{"0", "entries"} {
		if got := ask(fmt.Sprintf("%s/000.p/%d", level, signed)); got.StatusCode != http.StatusOK {
			t.Errorf("%s: what is signed: %s", level, got.Status)
		}
		got := ask(fmt.Sprintf("%s/000.p/%d", level, signed+1))
		if kept := got.Header.Get("Cache-Control"); got.StatusCode != http.StatusNotFound || kept != "no-store" {
			t.Errorf("%s: what is not signed: %s, %s", level, got.Status, kept)
		}
	}
	r.head(t)
	for _, level := range []string{"0", "entries"} {
		if got := ask(fmt.Sprintf("%s/000.p/%d", level, signed+1)); got.StatusCode != http.StatusOK {
			t.Errorf("%s: what is signed by now: %s", level, got.Status)
		}
	}
	for _, path := range []string{"0/000", "1/000.p/1", "0/001.p/1", "0/000.p/0", "0/000.p/256", "0/000.p/01", "7/000.p/1", "8/000.p/1", "63/000.p/1", "64/000.p/1", "-1/000.p/1",
		"0/x036/x028/x797/x018/x963/967", "0/0", "entries/000", "entries/x000/000.p/1", "data/000.p/1", "0/%2e%2e/000.p/1"} {
		if got := ask(path); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
}

// TestPublicEntries: if the operator allows it, strangers can read entries.
func TestPublicEntries(t *testing.T) {
	r := start(t, func(c *server.Config) { c.PublicEntries = true })
	r.token(t, "ada", access.Auditor)
	head := r.head(t)
	if err := r.reader(t, "").Tree(t.Context(), head).Entries(0, head.Size, func(int64, []byte) error { return nil }); err != nil {
		t.Error(err)
	}
}

// BenchmarkTiles requests whole tiles of 256 hashes, and bundles of as many entries, over HTTP on this machine.
func BenchmarkTiles(b *testing.B) {
	r := start(b, limitless)
	agent, auditor := r.token(b, "logistics-agent-v1", access.Agent), r.token(b, "ada", access.Auditor)
	r.fill(b, agent, 260)
	r.head(b)
	for name, path := range map[string]string{"tile": "0/000", "entries": "entries/000"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				request := must.Get(http.NewRequestWithContext(b.Context(), http.MethodGet, r.URL+"/log/tile/"+path, nil))(b)
				request.Header.Set("Authorization", "Bearer "+auditor)
				answer := must.Get(http.DefaultClient.Do(request))(b)
				n, err := io.Copy(io.Discard, answer.Body)
				if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
					b.Fatal(answer.Status, err)
				}
				b.SetBytes(n)
				must.Do(b, err)
			}
		})
	}
}

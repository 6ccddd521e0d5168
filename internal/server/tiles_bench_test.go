package server_test

import (
	"io"
	"net/http"
	"testing"

	"jurat/internal/access"
	"jurat/internal/must"
)

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

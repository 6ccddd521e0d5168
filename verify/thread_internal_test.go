package verify

import (
	"fmt"
	"runtime/debug"
	"testing"

	"jurat/evidence"
)

// TestLongWays: in a file with a very long chain of links, the search must not use more stack than in another file.
func TestLongWays(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	const many = 50_000
	for name, lead := range map[string]func(p *evidence.Payload, next *evidence.Record, n int){
		"by digest":  func(p *evidence.Payload, next *evidence.Record, _ int) { p.Saw = []evidence.Digest{next.Digest} },
		"by request": func(p *evidence.Payload, _ *evidence.Record, n int) { p.ParentRequestID = fmt.Sprint(n + 1) },
	} {
		var records []*evidence.Record
		for n := range many {
			r := &evidence.Record{Payload: evidence.Payload{RequestID: fmt.Sprint(n)}, Digest: evidence.DigestOf(fmt.Append(nil, n))}
			records = append(records, r)
		}
		for n, r := range records[:many-1] {
			lead(&r.Payload, records[n+1], n)
		}
		last := records[many-1]
		last.Payload.ChainID = "c"
		g := newGraph(records)
		for n, r := range records {
			if want := (thread{chain: "c"}); g.Threads[r] != want {
				t.Fatalf("%s: record %d is of %+v", name, n, g.Threads[r])
			}
		}
	}
}

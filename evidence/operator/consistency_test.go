package operator

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/must"
)

// grownLog is a log of n entries as tlog stores it: its roots at each size, and its hashes.
func grownLog(t testing.TB, n int64) ([]Checkpoint, tlog.HashReader) {
	t.Helper()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			list[i] = hashes[index]
		}
		return list, nil
	})
	roots := []Checkpoint{{Origin: "jurat.example/log", Root: EmptyRoot()}}
	for i := range n {
		more := must.Get(tlog.StoredHashes(i, fmt.Appendf(nil, "entry %d", i), reader))(t)
		hashes = append(hashes, more...)
		root := must.Get(tlog.TreeHash(i+1, reader))(t)
		roots = append(roots, Checkpoint{Origin: "jurat.example/log", Size: i + 1, Root: root})
	}
	return roots, reader
}

func proofBetween(t testing.TB, from, to int64, hashes tlog.HashReader) *Consistency {
	t.Helper()
	c := &Consistency{Origin: "jurat.example/log", From: from, To: to}
	if from > 0 {
		proof := must.Get(tlog.ProveTree(to, from, hashes))(t)
		c.Proof = proof
	}
	return c
}

// TestConsistency checks every pair of sizes against the proof of every other pair. Only the right proof fits.
func TestConsistency(t *testing.T) {
	const n = 9
	roots, hashes := grownLog(t, n)
	for from := int64(0); from <= n; from++ {
		for to := from; to <= n; to++ {
			c := proofBetween(t, from, to, hashes)
			file := must.Get(c.Marshal())(t)
			again, err := ParseConsistency(file)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if err := again.Check(roots[from], roots[to]); err != nil {
				t.Errorf("%d to %d: %v", from, to, err)
			}
			for i := range again.Proof {
				again.Proof[i][3] ^= 1
				if again.Check(roots[from], roots[to]) == nil {
					t.Errorf("%d to %d: node %d is not looked at", from, to, i)
				}
				again.Proof[i][3] ^= 1
			}
			again.Proof = append(again.Proof, tlog.Hash{})
			if again.Check(roots[from], roots[to]) == nil {
				t.Errorf("%d to %d: a node too many", from, to)
			}
			if from < n && c.Check(roots[from+1], roots[to]) == nil || to < n && c.Check(roots[from], roots[to+1]) == nil {
				t.Errorf("%d to %d: fits other sizes", from, to)
			}
			forged := roots[from]
			forged.Root[0] ^= 1
			if c.Check(forged, roots[to]) == nil {
				t.Errorf("%d to %d: fits another root", from, to)
			}
		}
	}
}

// TestConsistencyIsOfTheseCheckpoints: a proof shows nothing about checkpoints of another log, or of another size.
func TestConsistencyIsOfTheseCheckpoints(t *testing.T) {
	roots, hashes := grownLog(t, 9)
	for name, change := range map[string]func(small, large *Checkpoint){
		"the smaller is another log's": func(small, large *Checkpoint) { small.Origin = "other.example/log" },
		"the larger is another log's":  func(small, large *Checkpoint) { large.Origin = "other.example/log" },
		"the smaller has another size": func(small, large *Checkpoint) { *small = roots[4] },
		"the larger has another size":  func(small, large *Checkpoint) { large.Size = 8 },
	} {
		small, large := roots[5], roots[9]
		change(&small, &large)
		if err := proofBetween(t, 5, 9, hashes).Check(small, large); err == nil || errors.Is(err, ErrFork) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConsistencyShowsForks changes the smaller root at every size. A proof from the larger log's own nodes must show
// the fork. A changed proof must not show one, and nor must a proof about a log with one history.
func TestConsistencyShowsForks(t *testing.T) {
	const n = 17
	roots, hashes := grownLog(t, n)
	for from := int64(1); from < n; from++ {
		other := roots[from]
		other.Root[0] ^= 1
		for to := from + 1; to <= n; to++ {
			c := proofBetween(t, from, to, hashes)
			power := from&(from-1) == 0
			if err := c.Check(other, roots[to]); err == nil || errors.Is(err, ErrFork) == power {
				t.Errorf("%d to %d, as RFC 9162 has it: %v", from, to, err)
			}
			if power {
				c.Proof = append([]tlog.Hash{roots[from].Root}, c.Proof...)
			}
			if err := c.Check(other, roots[to]); !errors.Is(err, ErrFork) {
				t.Errorf("%d to %d: %v", from, to, err)
			}
			if err := c.Check(roots[from], roots[to]); err != nil {
				t.Errorf("%d to %d, of one history: %v", from, to, err)
			}
			for i := range c.Proof {
				c.Proof[i][3] ^= 1
				for _, small := range []Checkpoint{roots[from], other} {
					if err := c.Check(small, roots[to]); err == nil || errors.Is(err, ErrFork) {
						t.Errorf("%d to %d, with node %d changed: %v", from, to, i, err)
					}
				}
				c.Proof[i][3] ^= 1
			}
			for _, nodes := range [][]tlog.Hash{nil, c.Proof[1:], c.Proof[:len(c.Proof)-1], append(c.Proof[:len(c.Proof):len(c.Proof)], tlog.Hash{})} {
				made := *c
				made.Proof = nodes
				if err := made.Check(other, roots[to]); err == nil || errors.Is(err, ErrFork) {
					t.Errorf("%d to %d, with %d nodes instead of %d: %v", from, to, len(nodes), len(c.Proof), err)
				}
			}
		}
	}
	same := roots[5]
	same.Root[0] ^= 1
	if err := proofBetween(t, 5, 5, hashes).Check(same, roots[5]); !errors.Is(err, ErrFork) {
		t.Errorf("of one size: %v", err)
	}
	begun := roots[0]
	begun.Root[0] ^= 1
	if err := proofBetween(t, 0, 5, hashes).Check(begun, roots[5]); !errors.Is(err, ErrFork) {
		t.Errorf("of an empty log with another root: %v", err)
	}
}

func TestConsistencyRefused(t *testing.T) {
	node := strings.Repeat("A", 43) + "="
	tests := []struct{ name, doc, says string }{
		{"no line feed", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[],"to":1}`, "line feed"},
		{"another format", `{"format":"jurat/bundle/v1","from":1,"origin":"a","proof":[],"to":1}` + "\n", "/format"},
		{"sizes the wrong way round", `{"format":"jurat/consistency/v1","from":2,"origin":"a","proof":[],"to":1}` + "\n", "the smaller first"},
		{"a size too large", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[],"to":9007199254740992}` + "\n", "the smaller first"},
		{"a negative size", `{"format":"jurat/consistency/v1","from":-2,"origin":"a","proof":[],"to":1}` + "\n", "the smaller first"},
		{"no name", `{"format":"jurat/consistency/v1","from":1,"origin":"","proof":[],"to":1}` + "\n", "origin"},
		{"a node of other length", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":["AAAA"],"to":2}` + "\n", "/proof/0"},
		{"too many nodes", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":["` + strings.Repeat(node+`","`, 64) + node + `"],"to":2}` + "\n", "at most 64"},
		{"more members", `{"format":"jurat/consistency/v1","from":1,"more":1,"origin":"a","proof":[],"to":1}` + "\n", "more"},
		{"a size twice", `{"format":"jurat/consistency/v1","from":1,"from":1,"origin":"a","proof":[],"to":1}` + "\n", "twice"},
		{"another order", `{"from":1,"format":"jurat/consistency/v1","origin":"a","proof":[],"to":1}` + "\n", "one form"},
		{"null for a list", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":null,"to":1}` + "\n", "one form"},
		{"a space", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[], "to":1}` + "\n", "one form"},
	}
	for _, tt := range tests {
		c, err := ParseConsistency([]byte(tt.doc))
		if err == nil || c != nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, error %v; want one about %q", tt.name, c, err, tt.says)
		}
	}
	var syntax *evidence.SyntaxError
	if _, err := ParseConsistency([]byte(tests[1].doc)); !errors.As(err, &syntax) {
		t.Errorf("%v names no place", err)
	}
}

// FuzzParseConsistency: a proof that parses marshals back to the same bytes, and Check does not panic on it.
func FuzzParseConsistency(f *testing.F) {
	roots, hashes := grownLog(f, 7)
	file := must.Get(proofBetween(f, 3, 7, hashes).Marshal())(f)
	f.Add(file)
	f.Add([]byte(`{"format":"jurat/consistency/v1","from":0,"origin":"a","proof":[],"to":9007199254740991}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := ParseConsistency(file)
		if err != nil {
			return
		}
		if again, err := c.Marshal(); err != nil || !bytes.Equal(again, file) {
			t.Fatalf("%q parses and marshals to %q, %v", file, again, err)
		}
		if c.Check(roots[3], roots[7]) == nil && (c.From != 3 || c.To != 7) {
			t.Fatalf("%q fits other sizes", file)
		}
		small, large := roots[3], roots[7]
		small.Origin, small.Size, large.Origin, large.Size = c.Origin, c.From, c.Origin, c.To
		c.Check(small, large) // must not panic
	})
}

// TestLongEntries: a line that no entry can have is wrong, and no error of reading.
func TestLongEntries(t *testing.T) {
	for _, n := range []int{evidence.MaxEntry, evidence.MaxEntry + 1, evidence.MaxEntry + spelling, 2 * evidence.MaxEntry} {
		for _, end := range []string{"", "\n"} {
			if err := ReadEntries(strings.NewReader(strings.Repeat(" ", n)+end), nil); !errors.Is(err, ErrEntries) {
				t.Errorf("%d bytes and %q: %v", n, end, err)
			}
		}
	}
}

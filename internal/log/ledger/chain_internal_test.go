package ledger

import (
	"fmt"
	"testing"
)

// TestStatesInUseStay: however many chains come by, a chain that is used among them stays, an old one goes, and all together stay within their room.
func TestStatesInUseStay(t *testing.T) {
	k := newLinks(nil)
	state := func(id string) *chainState { return &chainState{id: id, count: 1, weight: maxLinked / 100} }
	old, hot := state("old"), state("hot")
	k.put(old)
	k.put(hot)
	for n := range 1000 {
		k.put(state(fmt.Sprint(n)))
		if k.get("hot") != hot {
			t.Fatalf("after %d others, a chain in use is read again", n)
		}
	}
	if k.get("old") == old {
		t.Error("nothing goes")
	}
	held := 0
	for _, states := range []map[string]*chainState{k.chains, k.before} {
		for _, s := range states {
			held += s.size()
		}
	}
	if held > maxLinked {
		t.Errorf("%d bytes are held of %d", held, maxLinked)
	}
	newer := &chainState{id: "hot", count: 2}
	k.put(newer)
	k.put(hot)
	if k.get("hot") != newer {
		t.Error("an older state takes the place of a newer one")
	}
}

package ledger

import (
	"fmt"
	"testing"

	"jurat/internal/test/must"
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
		must.Need(t, k.get("hot") == hot, "after %d others, a chain in use is read again", n)
	}
	must.Hold(t, k.get("old") != old, "nothing goes")
	held := 0
	for _, states := range []map[string]*chainState{k.chains, k.before} {
		for _, s := range states {
			held += s.size()
		}
	}
	must.Hold(t, held <= maxLinked, "%d bytes are held of %d", held, maxLinked)
	newer := &chainState{id: "hot", count: 2}
	k.put(newer)
	k.put(hot)
	must.Hold(t, k.get("hot") == newer, "an older state takes the place of a newer one")
}

package verify_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"jurat/internal/test/must"
	"jurat/timestamp"
)

// TestDERRoundTrip: DER that is taken apart and not changed encodes to the same bytes. After a change, all lengths are
// correct.
func TestDERRoundTrip(t *testing.T) {
	token := must.Get(timestamp.NewMock().Issue(&timestamp.Request{CertReq: true}))(t)
	n, err := parseDER(token)
	must.Need(t, err == nil && bytes.Equal(n.Bytes(), token), "%v", err)
	random, changed := rand.New(rand.NewPCG(1, 2)), 0
	for range 500 {
		choice := make([]byte, 8)
		for i := range choice {
			choice[i] = byte(random.Uint32())
		}
		n, _ := parseDER(token)
		n.Mutate(choice)
		der := n.Bytes()
		if !bytes.Equal(der, token) {
			changed++
		}
		var twice *derNode
		if twice, err = parseDER(der); err == nil && !bytes.Equal(twice.Bytes(), der) {
			t.Errorf("%x becomes %x", der, twice.Bytes())
		}
	}
	must.Hold(t, changed >= 400, "%d changes of 500", changed)
}

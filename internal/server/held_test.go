package server

import (
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
)

// TestHeld: what a page of a chain holds does not grow with what is before it, beyond the window of bodies, whatever records state.
func TestHeld(t *testing.T) {
	r := &evidence.Record{Payload: evidence.Payload{Observed: &evidence.Observed{Request: &evidence.ObservedBody{Bytes: 400 << 10}, Response: &evidence.ObservedBody{Bytes: 1 << 10}}}}
	h, sum := held{}, int64(0)
	for range 10_000 {
		sum += h.more(r, false)
	}
	if most := int64(observed.MaxWindow + 4*401<<10); sum != most {
		t.Errorf("10,000 calls take %d bytes, want %d", sum, most)
	}
	r.Payload.Observed.Request.Bytes = 1 << 50
	if more := (&held{}).more(r, true); more > observed.MaxWindow+8*observed.MaxKept {
		t.Errorf("a call that states very many bytes takes %d", more)
	}
	if more := (&held{}).more(&evidence.Record{}, true); more != 0 {
		t.Errorf("an empty record takes %d", more)
	}
}

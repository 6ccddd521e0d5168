package keys

import (
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/must"
	"jurat/verify/trust"
)

// TestTrustDemandsBothSignatures: if the second key came later, the trust file allows the first key alone until then. If
// it came first, never. Without a second key, the actor signs alone.
func TestTrustDemandsBothSignatures(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	config := Config{Files: filestore.NewFolder(t.TempDir()), Now: func() time.Time { return at }}
	ring := must.Get(NewRing(config))(t)
	for _, k := range []struct {
		name      string
		algorithm evidence.Algorithm
	}{{"alone", evidence.ES256}, {"later", evidence.Ed25519}, {"later", evidence.MLDSA65}, {"first", evidence.MLDSA65}, {"first", evidence.ES256}} {
		must.Get(ring.Create(t.Context(), evidence.RoleAgent, k.name, k.algorithm, nil))(t)
	}
	held := must.Get(ring.Keys(t.Context()))(t)
	trusted := Trusted(held, NewHistory())
	if len(trusted) != 5 {
		t.Fatalf("%d keys", len(trusted))
	}
	of := map[string]trust.Key{}
	for _, k := range trusted {
		of[k.Name+" "+string(k.Algorithm)] = k
	}
	if k := of["alone ES256"]; k.With != nil || !k.WithFrom.IsZero() {
		t.Errorf("%+v", k)
	}
	for _, tt := range []struct {
		key, with string
		from      time.Time
	}{
		{"later Ed25519", "later ML-DSA-65", at.Add(Settling)}, {"later ML-DSA-65", "later Ed25519", time.Time{}},
		{"first ES256", "first ML-DSA-65", time.Time{}}, {"first ML-DSA-65", "first ES256", time.Time{}},
	} {
		k := of[tt.key]
		if len(k.With) != 1 || k.With[0] != of[tt.with].KeyID || !k.WithFrom.Equal(tt.from) {
			t.Errorf("%s: signs with %v from %v", tt.key, k.With, k.WithFrom)
		}
	}
}

package installation_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/asn1"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

var because = keys.Why{Reason: "because", By: "somebody"}

func get[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ownKey makes a key that the installation does not have: a first or a second key.
func ownKey(t *testing.T, second bool) (evidence.Signer, keys.OwnerKey) {
	t.Helper()
	var private crypto.Signer
	if second {
		var seed [32]byte
		rand.Read(seed[:])
		private = evidence.NewMLDSA65(&seed)
	} else {
		private = get(generate())
	}
	return get(evidence.NewSigner(private, nil)), keys.OwnerKey{Public: get(evidence.MarshalPublicKey(private.Public()))}
}

func generate() (crypto.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return private, err
}

func fresh(t *testing.T) *installation.Installation {
	t.Helper()
	i := created(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data")})
	t.Cleanup(func() { i.Close() })
	return i
}

const payload = `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p",
	"response":"r","parameters":{}}`

// accept gives the installation a record that an owner has signed.
func accept(t *testing.T, i *installation.Installation, signers ...evidence.Signer) (*evidence.Record, error) {
	t.Helper()
	r, err := i.Ledger.Accept(t.Context(), get(client.Sign([]byte(payload), signers...)))
	if err != nil {
		return nil, err
	}
	return i.Ledger.ProveOne(t.Context(), r)
}

func wantStatus(t *testing.T, i *installation.Installation, what string, r *evidence.Record, want map[verify.Guarantee]verify.Status) {
	t.Helper()
	report := verify.Record(r, verify.Options{Trust: get(i.Trust(t.Context()))})
	for g, status := range want {
		f := report.Of(g)
		must.Hold(t, f.Status == status, "%s: %s is %s, want %s: %s", what, g, f.Status, status, f.Reason)
	}
}

var (
	allProved = map[verify.Guarantee]verify.Status{verify.Content: verify.Proved, verify.Authentication: verify.Proved,
		verify.NonRepudiation: verify.Proved, verify.Time: verify.Proved, verify.Order: verify.Proved}
	byOperator = map[verify.Guarantee]verify.Status{verify.Authentication: verify.Proved, verify.NonRepudiation: verify.NotProved,
		verify.Time: verify.Proved, verify.Order: verify.Proved}
)

// TestOwnersKey: only the owner can sign, and the trust file says so.
func TestOwnersKey(t *testing.T) {
	i := fresh(t)
	signer, key := ownKey(t, false)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{key}, time.Time{}, because))
	r := get(accept(t, i, signer))
	wantStatus(t, i, "the owner's record", r, allProved)
	wantError(t, "signers", keys.ErrOwner, errorOf(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a")))
	wantError(t, "registering a second key of the operator", keys.ErrOwner, errorOf(i.Keys.Create(t.Context(), evidence.RoleAgent, "a", evidence.MLDSA65, nil)))
	wantError(t, "rotated by the operator", keys.ErrOwner, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	_, next := ownKey(t, false)
	wantError(t, "another one registered", keys.ErrEvent, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{next}, time.Time{}, because))
	wantError(t, "registering one key for two actors", keys.ErrEvent, i.Keys.Register(t.Context(), evidence.RoleReviewer, "p", []keys.OwnerKey{key}, time.Time{}, because))
	must.Say(t, i.Keys.Register(t.Context(), evidence.RoleJuror, "j", []keys.OwnerKey{next}, time.Time{}, because), "", "a juror's key is registered")
	wantError(t, "without a reason", keys.ErrEvent, i.Keys.Register(t.Context(), evidence.RoleAgent, "b", []keys.OwnerKey{next}, time.Time{}, keys.Why{By: "w"}))
}

// TestFromOperatorToOwner: registering cannot give an actor two holders. Rotating moves the keys from one holder to the other.
func TestFromOperatorToOwner(t *testing.T) {
	for name, pq := range map[string]bool{"one key": false, "two keys": true} {
		t.Run(name, func(t *testing.T) {
			i := created(t, installation.Config{Dir: filepath.Join(t.TempDir(), "data"), PostQuantum: pq})
			defer i.Close()
			before := get(sealRequest(t, i, "r"))
			before = get(i.Ledger.ProveOne(t.Context(), before))
			signer, key := ownKey(t, false)
			given := []keys.OwnerKey{key}
			wantError(t, "registered beside the operator's key", keys.ErrHeld, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", given, time.Time{}, because))
			must.Do(t, i.Keys.RotateOwned(t.Context(), evidence.RoleAgent, "a", given, because))
			r := get(accept(t, i, signer))
			wantStatus(t, i, "the owner's record", r, allProved)
			wantStatus(t, i, "the operator's record", before, byOperator)
			wantError(t, "signers", keys.ErrOwner, errorOf(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a")))
			for _, k := range get(i.Keys.Keys(t.Context())) {
				must.Hold(t, k.Role != evidence.RoleAgent, "the private key is still in %s", k.File)
			}
		})
	}
}

// TestRotation: records from before and after a rotation verify, and the old key signs nothing more.
func TestRotation(t *testing.T) {
	for name, pq := range map[string]bool{"one key": false, "two keys": true} {
		t.Run(name, func(t *testing.T) {
			c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), PostQuantum: pq}
			i := created(t, c)
			defer i.Close()
			old := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a"))
			first := get(sealRequest(t, i, "r"))
			for range 2 {
				must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", evidence.Ed25519, nil, because))
			}
			second := get(sealRequest(t, i, "r"))
			must.Hold(t, second.Payload.Signers[0].Algorithm == evidence.Ed25519 && len(second.Payload.Signers) == len(old),
				"signed with %v", second.Payload.Signers)
			for what, r := range map[string]*evidence.Record{"before": first, "after": second} {
				wantStatus(t, i, what, get(i.Ledger.ProveOne(t.Context(), r)), byOperator)
			}
			wantError(t, "sealed with a copy of the old keys", keys.ErrEnded, errorOf(i.Ledger.Seal(t.Context(), get(evidence.ParseDraft([]byte(payload))), old)))
			trusted := get(i.Trust(t.Context()))
			for _, s := range first.Payload.Signers {
				k := trusted.Key(s.KeyID)
				must.Hold(t, !k.NotAfter.IsZero() && len(k.With) == len(old)-1 && k.WithFrom.IsZero(), "the trust file says of the old key %+v", k)
			}
			for _, s := range second.Payload.Signers {
				k := trusted.Key(s.KeyID)
				must.Hold(t, k.NotAfter.IsZero() && len(k.With) == len(old)-1 && k.WithFrom.IsZero(), "the trust file says of the new key %+v", k)
			}
			damages, _, err := installation.Fsck(t.Context(), c, nil)
			must.Hold(t, err == nil && len(damages) == 0, "fsck: %v, %v", damages, err)
		})
	}
}

// TestSecondKeyAfterRotation: the operator makes a second key for an actor that is already in the log. Readers demand it
// as any other second key, also before and after a rotation.
func TestSecondKeyAfterRotation(t *testing.T) {
	i := fresh(t)
	get(sealRequest(t, i, "r"))
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	alone := get(sealRequest(t, i, "r"))
	second := get(i.Keys.Create(t.Context(), evidence.RoleAgent, "a", evidence.MLDSA65, nil))
	both := get(sealRequest(t, i, "r"))
	demand := func(what string) {
		t.Helper()
		trusted := get(i.Trust(t.Context()))
		first := trusted.Key(alone.Payload.Signers[0].KeyID)
		must.Hold(t, len(first.With) == 1 && first.With[0] == second.KeyID && first.WithFrom.Equal(second.Created.Add(keys.Settling)),
			"%s: the first key signs with %v from %v", what, first.With, first.WithFrom)
		if k := trusted.Key(second.KeyID); len(k.With) != 1 || k.With[0] != first.KeyID || !k.WithFrom.IsZero() {
			t.Errorf("%s: the second key signs with %v from %v", what, k.With, k.WithFrom)
		}
		for _, r := range []*evidence.Record{alone, both} {
			wantStatus(t, i, what, get(i.Ledger.ProveOne(t.Context(), r)), byOperator)
		}
	}
	demand("before")
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	demand("after")
	last := get(sealRequest(t, i, "r"))
	for _, s := range last.Payload.Signers {
		k := get(i.Trust(t.Context())).Key(s.KeyID)
		must.Hold(t, len(k.With) == 1 && k.WithFrom.IsZero(), "the new key: %+v", k)
	}
}

// TestPairOfAnOwner: two keys are registered and replaced together.
func TestPairOfAnOwner(t *testing.T) {
	i := fresh(t)
	first, firstKey := ownKey(t, false)
	second, secondKey := ownKey(t, true)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{secondKey}, time.Time{}, because))
	wantError(t, "adding a first key to a second one that has signed alone", keys.ErrPair, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{firstKey}, time.Time{}, because))
	must.Do(t, i.Keys.Retire(t.Context(), second.Info().KeyID, because))
	second, secondKey = ownKey(t, true)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{firstKey, secondKey}, time.Time{}, because))
	r := get(accept(t, i, first, second))
	wantStatus(t, i, "both", r, allProved)
	wantError(t, "the first alone", keys.ErrIncomplete, errorOf(accept(t, i, first)))
	nextFirst, nextFirstKey := ownKey(t, false)
	nextSecond, nextSecondKey := ownKey(t, true)
	wantError(t, "one of two", keys.ErrPair, i.Keys.RotateOwned(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{nextFirstKey}, because))
	must.Do(t, i.Keys.RotateOwned(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{nextFirstKey, nextSecondKey}, because))
	wantError(t, "the old ones", keys.ErrEnded, errorOf(accept(t, i, first, second)))
	again := get(accept(t, i, nextFirst, nextSecond))
	for what, record := range map[string]*evidence.Record{"old": r, "new": again} {
		wantStatus(t, i, what, record, allProved)
	}
}

// TestEndOfAKey: after its key's end an actor cannot sign until it gets another key.
func TestEndOfAKey(t *testing.T) {
	i := fresh(t)
	r := get(sealRequest(t, i, "r"))
	id := r.Payload.Signers[0].KeyID
	must.Do(t, i.Keys.Retire(t.Context(), id, because))
	wantError(t, "signers", keys.ErrNoKey, errorOf(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a")))
	wantError(t, "a first key again", keys.ErrNoKey, errorOf(i.Keys.Create(t.Context(), evidence.RoleAgent, "a", evidence.ES256, nil)))
	wantError(t, "retired twice", keys.ErrEvent, i.Keys.Retire(t.Context(), id, because))
	wantError(t, "a key that is not there", keys.ErrNoSuchKey, i.Keys.Retire(t.Context(), evidence.DigestOf(nil), because))
	wantError(t, "an actor without a key", keys.ErrNoSuchKey, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "nobody", "", nil, because))
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	get(sealRequest(t, i, "r"))
	operator := get(i.Keys.Signers(t.Context(), evidence.RoleOperator, "operator"))[0].Info().KeyID
	must.Say(t, i.Keys.Revoke(t.Context(), operator, time.Time{}, because), "rotate it first", "the operator's own key")
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleOperator, "operator", "", nil, because))
	wantError(t, "the operator's old key", nil, i.Keys.Revoke(t.Context(), operator, time.Time{}, because))
}

// TestRetireCallerLeaves: the file of a retired key is removed even if the caller's context has ended meanwhile.
func TestRetireCallerLeaves(t *testing.T) {
	i := fresh(t)
	r := get(sealRequest(t, i, "r"))
	ctx, leave := context.WithCancel(t.Context())
	i.After(func(string) { leave() })
	if err := i.Keys.Retire(ctx, r.Payload.Signers[0].KeyID, because); err != nil || ctx.Err() == nil {
		t.Errorf("%v, the caller has left: %v", err, ctx.Err())
	}
	for _, k := range get(i.Keys.Keys(t.Context())) {
		must.Hold(t, k.KeyID != r.Payload.Signers[0].KeyID, "the private key is still there")
	}
}

// TestKnownEnd: a key that is registered for a time signs until then.
func TestKnownEnd(t *testing.T) {
	now := time.Now()
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return now }}
	i := created(t, c)
	defer i.Close()
	signer, key := ownKey(t, false)
	end := now.Add(time.Hour).UTC().Truncate(time.Second)
	err := i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{key}, now.Add(-time.Hour), because)
	must.Hold(t, err != nil, "a key whose end has passed was registered")
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{key}, end, because))
	k := get(i.Trust(t.Context())).Key(signer.Info().KeyID)
	must.Hold(t, k.NotAfter.Equal(end), "not after %v, want %v", k.NotAfter, end)
	r := get(accept(t, i, signer))
	wantStatus(t, i, "before", r, allProved)
	now = end
	wantError(t, "after its end", keys.ErrEnded, errorOf(accept(t, i, signer)))
	next, nextKey := ownKey(t, false)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{nextKey}, time.Time{}, because))
	must.Fail(t, nil)(accept(t, i, next))
}

// TestCertificates: registered certificates come with records. That alone does not make them trusted.
func TestCertificates(t *testing.T) {
	i := fresh(t)
	private := get(generate())
	signer := get(evidence.NewSigner(private, nil))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 36}}, URIs: []*url.URL{get(url.Parse(trust.Identity(evidence.RoleAgent, "a")))}}
	own := get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	other := get(generate())
	root := get(x509.CreateCertificate(rand.Reader, template, template, other.Public(), other))
	given := []keys.OwnerKey{{Public: get(evidence.MarshalPublicKey(private.Public()))}}
	must.Say(t, keys.AddCertificates(given, [][]byte{root, own}), "", "a root certificate was accepted before the key's own")
	must.Do(t, keys.AddCertificates(given, [][]byte{own, root}))
	wrong := []keys.OwnerKey{{Public: given[0].Public, Certificates: [][]byte{root}}}
	must.Say(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", wrong, time.Time{}, because), "", "a certificate of another key was registered")
	for _, other := range []struct {
		role evidence.Role
		name string
	}{{evidence.RoleAgent, "b"}, {evidence.RoleReviewer, "a"}} {
		if err := i.Keys.Register(t.Context(), other.role, other.name, given, time.Time{}, because); err == nil || !strings.Contains(err.Error(), `is that of "urn:jurat:agent:a"`) {
			t.Errorf("the certificate of agent a is registered for %s %s: %v", other.role, other.name, err)
		}
	}
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", given, time.Time{}, because))
	r := get(accept(t, i, signer))
	must.Hold(t, len(r.Certificates) == 2 && string(r.Certificates[0]) == string(own), "%d certificates", len(r.Certificates))
	wantStatus(t, i, "with certificates", r, allProved)
	again := get(evidence.Open(get(r.Marshal())))
	must.Hold(t, len(again.Certificates) == 2, "the certificates are not in the record's file")
}

// TestCertificateThatBeginsLater: the clock of a CA was ahead, or a certificate is renewed before it counts. It is registered when it counts, and not
// before: of what is sealed until then nothing would ever prove who signed it. A certificate that counts stays in use meanwhile.
func TestCertificateThatBeginsLater(t *testing.T) {
	i := fresh(t)
	ca, private := get(generate()), get(generate())
	signer, public := get(evidence.NewSigner(private, nil)), get(evidence.MarshalPublicKey(private.Public()))
	certificate := func(serial int64, name string, of crypto.PublicKey, from time.Time) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: time.Now().Add(48 * time.Hour), BasicConstraintsValid: true}
		if template.IsCA = name == "ca"; !template.IsCA {
			template.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 36}}
			template.URIs = []*url.URL{get(url.Parse(trust.Identity(evidence.RoleAgent, name)))}
		}
		return get(x509.CreateCertificate(rand.Reader, template, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}, of, ca))
	}
	now := time.Now()
	root, good := certificate(1, "ca", ca.Public(), now.Add(-time.Hour)), certificate(2, "a", private.Public(), now.Add(-time.Minute))
	register := func(certificates ...[]byte) error {
		return i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{{Public: public, Certificates: certificates}}, time.Time{}, because)
	}
	refused := map[string][][]byte{"an hour ahead": {certificate(3, "a", private.Public(), now.Add(time.Hour))}, "a minute ahead": {certificate(4, "a", private.Public(), now.Add(time.Minute))},
		"its CA's begins later": {good, certificate(5, "ca", ca.Public(), now.Add(time.Hour))}}
	for name, certificates := range refused {
		must.Want(t, register(certificates...), keys.ErrNotYet, name)
	}
	must.Do(t, register(good))
	for name, certificates := range refused {
		must.Want(t, register(certificates...), keys.ErrNotYet, "renewed", name)
	}
	r := get(accept(t, i, signer))
	vouches := get(i.Trust(t.Context()))
	vouches.Keys = slices.DeleteFunc(vouches.Keys, func(k trust.Key) bool { return k.Name == "a" })
	vouches.CAs = []trust.CA{{Name: "ca", Certificate: root, Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner, Revocation: trust.NotAsked}}
	report := verify.Record(r, verify.Options{Trust: get(trust.Parse(get(vouches.Marshal())))})
	f := report.Of(verify.Authentication)
	must.Hold(t, f.Status == verify.Proved, "%v", f)
}

// TestKeyEventsOfAnotherProcess: a process that has loaded a key notices that another process replaced it.
func TestKeyEventsOfAnotherProcess(t *testing.T) {
	c, i := anew(t)
	defer i.Close()
	first := get(sealRequest(t, i, "r"))
	elsewhere := get(installation.Open(t.Context(), c))
	defer elsewhere.Close()
	must.Do(t, elsewhere.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	second := get(sealRequest(t, i, "r")) // by the process that had read the old key
	must.Hold(t, second.Payload.Signers[0] != first.Payload.Signers[0], "signed with a key that another process has replaced")
}

// TestRevoked: a record from before the theft of a key verifies if an independent clock shows that it is from before.
// The operator's own clock does not show that. A record from after the theft never verifies.
func TestRevoked(t *testing.T) {
	ahead := -time.Hour // of the operator's clock
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return time.Now().Add(ahead) }}
	must.Do(t, installation.Create(t.Context(), c))
	i := get(installation.Open(t.Context(), c))
	signer, key := ownKey(t, false)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "a", []keys.OwnerKey{key}, time.Time{}, because))
	must.Do(t, i.Close())
	ahead = 0
	description, _ := outside(t, "outside")
	must.Do(t, installation.AddOutside(t.Context(), c, description, false))
	i = get(installation.Open(t.Context(), c))
	defer i.Close()
	r := get(accept(t, i, signer))
	wantStatus(t, i, "before", r, allProved)
	ahead = 4 * time.Minute // later than every stamp, and not so far that what is sealed is refused as being of the future
	revoke := func(from time.Time) *trust.Trust {
		t.Helper()
		must.Do(t, i.Keys.Revoke(t.Context(), signer.Info().KeyID, from, because))
		return get(i.Trust(t.Context()))
	}
	doubted := func(what string, trusted *trust.Trust) {
		t.Helper()
		report := verify.Record(r, verify.Options{Trust: trusted})
		for _, g := range []verify.Guarantee{verify.Authentication, verify.NonRepudiation} {
			f := report.Of(g)
			must.Hold(t, f.Status == verify.NotProved && f.Rule == "revoked", "%s: %s is %s by %q: %s", what, g, f.Status, f.Rule, f.Reason)
		}
	}
	trusted := revoke(time.Time{})
	wantStatus(t, i, "before it was stolen, by an independent clock", r, allProved)
	own := *trusted
	own.Authorities = trusted.Authorities[:1]
	doubted("by the operator's clock", &own)
	wantError(t, "signed by the thief", keys.ErrEnded, errorOf(accept(t, i, signer)))
	doubted("stolen before", revoke(time.Now().Add(-30*time.Minute)))
	wantError(t, "revoked from a later time", keys.ErrEvent, i.Keys.Revoke(t.Context(), signer.Info().KeyID, time.Now(), because))
	wantError(t, "revoked from before it was the owner's", keys.ErrEvent, i.Keys.Revoke(t.Context(), signer.Info().KeyID, time.Now().Add(-3*time.Hour), because))
}

// TestAcceptApart accepts a record of which the owner has sealed two members apart, also after a crash between the notes
// that their values are not here. They do not count as lost, and cannot be erased here.
func TestAcceptApart(t *testing.T) {
	c, i := anew(t)
	defer i.Close()
	signer, key := ownKey(t, false)
	must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, "courier", []keys.OwnerKey{key}, time.Time{}, because))
	now := time.Now()
	r := get(draft(t).SealingApart(nil, "/prompt", "/response").Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, Time: now,
		RecordID: get(evidence.NewRecordID(now, rand.Reader)), Random: rand.Reader}))
	r.Disclosures = nil
	half := new(*r)
	half.Payload.SealedApart = []string{"/prompt"} // as after a crash
	must.Do(t, i.Keep(t.Context(), half))
	r = get(i.Ledger.Accept(t.Context(), r))
	wantWhole(t, c)
	wantDisclosed(t, i, r)
	wantError(t, "erased", erasure.ErrElsewhere, errorOf(i.Apart.Erase(t.Context(), order(r, "/prompt"))))
	wantStatus(t, i, "sealed apart by its owner", get(i.Ledger.ProveOne(t.Context(), r)), allProved)
}

// TestRotatedByTwo: another process logs a new key, and dies before it renames the file. A process that has the
// installation open replaces that key. It does not take it for an unused one.
func TestRotatedByTwo(t *testing.T) {
	c, _ := made(t)
	i, other := open(t, c), open(t, c)
	get(sealRequest(t, i, "r"))
	must.Need(t, crash(other, 1, func() { other.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because) }), "it has not crashed")
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	wantStatus(t, i, "after both", get(i.Ledger.ProveOne(t.Context(), get(sealRequest(t, i, "r")))), byOperator)
	events := get(i.Ledger.Chain(t.Context(), operator.KeysChain))
	must.Hold(t, len(events) == 3, "%d events, want the first key's, and two rotations", len(events))
	files := keyFiles(t, c.Dir)
	must.Hold(t, len(files) == 2, "files: %v", files) // of the fixture's agent, and of this one
	wantWhole(t, c)
}

// rotatorFolder, if set, makes this test binary a process that rotates a key of the installation in that folder. It dies after the log has
// the event and before any file has changed.
const rotatorFolder = "JURAT_TEST_ROTATE"

func rotateAndDie(dir string) error {
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	i.After(func(string) {
		if self.Kill() == nil {
			select {} // the signal comes
		}
	})
	return i.Keys.Rotate(ctx, evidence.RoleAgent, "a", "", nil, because)
}

// keyFiles are the names of the key files of agents.
func keyFiles(t *testing.T, dir string) []string {
	t.Helper()
	list := get(filepath.Glob(filepath.Join(dir, "keys", "agent", "*")))
	for n := range list {
		list[n] = filepath.Base(list[n])
	}
	slices.Sort(list)
	return list
}

// TestKilledBetweenLogAndFiles: if a process dies after one half of a rotation, the next process does the other half.
func TestKilledBetweenLogAndFiles(t *testing.T) {
	for name, pq := range map[string]bool{"one key": false, "two keys": true} {
		t.Run(name, func(t *testing.T) {
			c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), PostQuantum: pq}
			i := created(t, c)
			first := get(sealRequest(t, i, "r"))
			before := keyFiles(t, c.Dir)
			// Before the log has the event, a key is in a file and belongs to no actor.
			staged := get(i.Keys.Next(t.Context(), evidence.RoleAgent, "a", evidence.ES256, nil))
			must.Do(t, i.Close())
			i = get(installation.Open(t.Context(), c))
			if r := get(sealRequest(t, i, "r")); !slices.Equal(r.Payload.Signers, first.Payload.Signers) {
				t.Errorf("signed with %v, but the log knows only %v", r.Payload.Signers, first.Payload.Signers)
			}
			must.Do(t, i.Close())

			child := exec.CommandContext(t.Context(), get(os.Executable()))
			child.Env = append(os.Environ(), rotatorFolder+"="+c.Dir)
			out, err := child.CombinedOutput()
			must.Need(t, err != nil && !child.ProcessState.Exited(), "it was not killed: %v\n%s", err, out)
			left := keyFiles(t, c.Dir)
			for _, file := range before {
				must.Hold(t, slices.Contains(left, file), "%s was destroyed before the process was killed", file)
			}
			must.Hold(t, len(left) == 2*len(before), "files after the crash: %v", left)

			i = get(installation.Open(t.Context(), c))
			defer i.Close()
			r := get(sealRequest(t, i, "r"))
			must.Hold(t, r.Payload.Signers[0].KeyID == staged.KeyID && len(r.Payload.Signers) == len(first.Payload.Signers),
				"signed with %v, want the new key %s", r.Payload.Signers, staged.KeyID)
			now := keyFiles(t, c.Dir)
			for _, file := range now {
				must.Hold(t, !slices.Contains(before, file), "%s was not destroyed: %v", file, now)
			}
			must.Hold(t, len(now) == len(before), "files: %v", now)
			wantError(t, "a second time", nil, i.Keys.Tidy(t.Context()))
			again := keyFiles(t, c.Dir)
			must.Hold(t, slices.Equal(again, now), "a second time: %v, before %v", again, now)
		})
	}
}

// TestContradictoryKeyChain: an installation whose log contradicts itself about keys does not open, since it is unclear who may sign. It
// can still be examined.
func TestContradictoryKeyChain(t *testing.T) {
	c, i := anew(t)
	for _, name := range []string{"b", "c"} {
		_, key := ownKey(t, false)
		must.Do(t, i.Keys.Register(t.Context(), evidence.RoleAgent, name, []keys.OwnerKey{key}, time.Time{}, because))
	}
	for range 20 { // beyond what opening the log reads
		sealQuickly(t, i)
	}
	must.Do(t, i.Close())
	db := get(sql.Open("sqlite", filepath.Join(c.Dir, "jurat.db")))
	defer db.Close()
	for _, statement := range []string{`DROP TRIGGER records_stay`, `DELETE FROM records WHERE idx = 0`} {
		get(db.ExecContext(t.Context(), statement))
	}
	wantError(t, "opened", ledger.ErrDamaged, errorOf(installation.Open(t.Context(), c)))
	finds(t, c, fsck.DamageKeyEvents)
	finds(t, c, fsck.DamageMissingRow)
}

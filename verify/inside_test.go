package verify_test

import (
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/dertest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// wholeRecord is a record with every part that a record can have: a token, a stamped checkpoint that was renewed,
// certificates of its signer, a place in a log. The options prove all of it.
func wholeRecord(t testing.TB) (file []byte, o verify.Options) {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	r := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a"))))(t)
	o = h.Options(t)
	public := must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)
	o = newWorld().build(t, r, o, public)
	first, second := newTSA(t, "first", on(1000)), newTSA(t, "second", on(1000))
	a := evidence.Anchor{Checkpoint: r.Log.Checkpoint}
	a.Timestamps = [][][]byte{{over(t, first, &a, 0, on(0).Add(time.Hour))}}
	a.Timestamps = append(a.Timestamps, [][]byte{over(t, second, &a, 1, on(0).Add(2*time.Hour))})
	r.Log.Anchors = []evidence.Anchor{a}
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Authorities = append(trusted.Authorities, first.trusted(trust.Independent, on(900)), second.trusted(trust.Independent, on(900)))
	})
	return must.Get(r.Marshal())(t), o
}

// FuzzInside changes a part of a whole record without breaking the lengths around it, and signs it again as a hostile
// but trusted authority or log could. The program must always answer, and must not say anything false about the
// payload.
func FuzzInside(f *testing.F) {
	file, o := wholeRecord(f)
	if r := must.Get(verify.File(file, o))(f); r.Of(verify.Time).Status != verify.Proved || r.Of(verify.Content).Status != verify.Proved {
		f.Fatalf("%+v", r.Details)
	}
	for where := range insides {
		for how := range byte(10) {
			f.Add(where, []byte{how * 25, 7, how, 3, 200, how}, int64(how)<<60)
		}
	}
	f.Fuzz(func(t *testing.T, where int, choice []byte, number int64) {
		r := must.Get(evidence.Open(file))(t)
		o := o
		o.Trust = must.Get(trust.Parse(must.Get(o.Trust.Marshal())(t)))(t)
		insides[((where%len(insides))+len(insides))%len(insides)](t, r, &o, choice, number)
		changed, err := r.Marshal()
		if err != nil {
			return // too long
		}
		report, err := verify.File(changed, o)
		if err != nil {
			t.Fatalf("%v\n%s", err, changed)
		}
		if content := report.Of(verify.Content); content.Status == verify.Refuted {
			t.Errorf("the signed bytes are unchanged, but content is refuted: %+v", content)
		}
	})
}

// insides are the parts that FuzzInside changes.
var insides = []func(t testing.TB, r *evidence.Record, o *verify.Options, choice []byte, number int64){
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // a token, not signed again
		r.Timestamps[0].Token = mutated(t, r.Timestamps[0].Token, choice)
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // TSTInfo, signed again by the authority
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *dertest.Token) { k.Info.Mutate(choice) })
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // its signed attributes
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *dertest.Token) { k.Signer.At(3).Mutate(choice) })
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // its certificates
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *dertest.Token) { k.Data.At(3).Mutate(choice) })
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // a renewal
		r.Log.Anchors[0].Timestamps[1][0] = mutated(t, r.Log.Anchors[0].Timestamps[1][0], choice)
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // a proof of consistency
		r.Log.Anchors[0].Consistency = [][]byte{make([]byte, 32)}
		copy(r.Log.Anchors[0].Consistency[0], choice)
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, number int64) { // the signer's certificates
		i := int(uint64(number) % uint64(len(r.Certificates)))
		r.Certificates[i] = mutated(t, r.Certificates[i], choice)
	},
	func(t testing.TB, _ *evidence.Record, o *verify.Options, choice []byte, number int64) { // a revocation list
		o.CRLs = slices.Clone(o.CRLs)
		i := int(uint64(number) % uint64(len(o.CRLs)))
		if list, err := trust.ParseCRL(mutated(t, o.CRLs[i].Raw, choice)); err == nil {
			o.CRLs[i] = list
		}
	},
	func(t testing.TB, r *evidence.Record, o *verify.Options, choice []byte, number int64) { // a checkpoint of any size, and a path of any length
		r.Log.Checkpoint, o.Trust = checkpointOfSize(t, o.Trust, number)
		r.Log.Index, r.Log.Proof = int64(uint64(number)>>11), nil
		for range choice {
			r.Log.Proof = append(r.Log.Proof, make([]byte, 32))
		}
		if len(r.Log.Proof) > 63 {
			r.Log.Proof = r.Log.Proof[:63]
		}
		o.Checkpoint, o.Trust = checkpointOfSize(t, o.Trust, int64(len(choice)))
		o.Consistency = &operator.Consistency{Origin: "hostile.example/log", From: min(int64(len(choice)), number), To: max(int64(len(choice)), number)}
	},
	func(t testing.TB, r *evidence.Record, o *verify.Options, choice []byte, _ int64) { // a token of the checkpoint
		token := must.Get(jurattest.Authority(t, "", jurattest.Start).Issue(&timestamp.Request{Imprint: [32]byte(evidence.DigestOf([]byte(r.Log.Checkpoint))), CertReq: true}))(t)
		r.Log.Anchors = []evidence.Anchor{{Checkpoint: r.Log.Checkpoint, Timestamps: [][][]byte{{signedAnew(t, token, func(k *dertest.Token) { k.Info.Mutate(choice) })}}}}
	},
}

// mutated changes DER as the bytes choose, perhaps in several places.
func mutated(t testing.TB, der, choice []byte) []byte {
	t.Helper()
	n := must.Get(dertest.Parse(der))(t)
	for range 3 {
		if choice = n.Mutate(choice); len(choice) == 0 {
			break
		}
	}
	return n.Bytes()
}

// signedAnew changes a token and has the authority of houses sign it.
func signedAnew(t testing.TB, der []byte, change func(k *dertest.Token)) []byte {
	t.Helper()
	k := dertest.ParseToken(t, der)
	change(k)
	return k.Sign(t, jurattest.AuthorityKey(t, ""))
}

package verify_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

func trustFile(t *testing.T) string {
	t.Helper()
	h := jurattest.New(t)
	h.Seal(t, output("a"))
	doc := must.Get(h.Trust(t).Marshal())(t)
	return string(doc)
}

func TestTrustFileMarshalsBackToTheSameBytes(t *testing.T) {
	doc := trustFile(t)
	trusted := must.Get(trust.Parse([]byte(doc)))(t)
	again, err := trusted.Marshal()
	must.Hold(t, err == nil && bytes.Equal(again, []byte(doc)), "marshals to other bytes: %v\n%s\n%s", err, doc, again)
}

// TestFingerprintIgnoresLayout: reformatting a file does not change its fingerprint.
func TestFingerprintIgnoresLayout(t *testing.T) {
	doc := trustFile(t)
	prints := map[string]bool{}
	for _, text := range []string{doc, strings.Join(strings.Fields(doc), ""), "\n" + doc} {
		trusted := must.Get(trust.Parse([]byte(text)))(t)
		digest := must.Get(trusted.Fingerprint())(t)
		prints[digest.String()] = true
	}
	must.Equal(t, len(prints), 1)
}

func TestTrustFileIsReadStrictly(t *testing.T) {
	doc := trustFile(t)
	key := doc[strings.Index(doc, `"keys": [`)+len(`"keys": [`):]
	key = key[:strings.Index(key, "}")+1]
	logKey := doc[strings.Index(doc, `"logs": [`)+len(`"logs": [`):]
	logKey = strings.TrimSpace(logKey[:strings.Index(logKey, "]")])
	tests := []struct{ name, old, new, says string }{
		{"another format", trust.Format, "jurat/trust/v9", "format"},
		{"an unknown member", `"format":`, `"formats": 1, "format":`, "formats"},
		{"a duplicate member", `"format":`, `"format": "x", "format":`, "twice"},
		{"an unknown role", `"role": "agent"`, `"role": "king"`, "role"},
		{"an unknown custody", `"custody": "operator"`, `"custody": ""`, "custody"},
		{"an unknown clock", `"clock": "operator"`, `"clock": "sun"`, "clock"},
		{"no name", `"name": "a"`, `"name": ""`, "name"},
		{"bytes that are a number", `"certificate": "`, `"certificate": 7777, "x": "`, "base64"},
		{"bytes in two lines", `"certificate": "MII`, `"certificate": "MII\n`, "line breaks"},
		{"another algorithm", `"alg": "ES256"`, `"alg": "RS256"`, "alg"},
		{"another key id", `"key_id": "sha256:`, `"key_id": "sha256:0000`, "key_id"},
		{"a key twice", `"keys": [`, `"keys": [` + key + ",", "twice"},
		{"a public key that is none", `"public_key": "MFk`, `"public_key": "MFl`, "public_key"},
		{"a certificate that is none", `"certificate": "MII`, `"certificate": "MIJ`, "certificate"},
		{"a log key that is none", "jurattest.example/log+", "jurattest.example/log-", "logs/0"},
		{"a log key twice", `"logs": [`, `"logs": [` + logKey + ",", "twice"},
		{"a policy that is none", `"clock":`, `"policies": ["1.x"], "clock":`, "policies"},
		{"an end before the beginning", `"custody":`, `"not_before":"2026-02-01T00:00:00Z","not_after":"2026-01-01T00:00:00Z","custody":`, "not_after"},
		{"revoked from the beginning of time", `"custody":`, `"revoked":"0001-01-01T00:00:00Z","custody":`, "year 1"},
		{"the same moment elsewhere", `"custody":`, `"not_after":"0001-01-01T01:00:00+01:00","custody":`, "year 1"},
		{"an authority that ends there", `"clock":`, `"not_after":"0001-01-01T00:00:00Z","clock":`, "year 1"},
		{"a time that is none", `"custody":`, `"revoked":7,"custody":`, "RFC 3339"},
		{"trailing text", "\n}\n", "\n}\nx", "after the end"},
	}
	for _, tt := range tests {
		changed := strings.Replace(doc, tt.old, tt.new, 1)
		if tt.name == "another key id" {
			i := strings.Index(doc, tt.old) + len(`"key_id": "sha256:`)
			changed = doc[:i] + "0000" + doc[i+4:]
		}
		if changed == doc {
			t.Errorf("%s: the change does not apply to the file", tt.name)
			continue
		}
		_, err := trust.Parse([]byte(changed))
		must.Hold(t, err != nil && strings.Contains(err.Error(), tt.says), "%s: error %v; want one about %q", tt.name, err, tt.says)
	}
}

// TestFingerprintOfOldFiles: members added in later versions change nothing if they are left out.
func TestFingerprintOfOldFiles(t *testing.T) {
	const empty = `{"format":"jurat/trust/v1"}`
	trusted := must.Get(trust.Parse([]byte(empty)))(t)
	digest, err := trusted.Fingerprint()
	must.Hold(t, err == nil && digest == evidence.DigestOf([]byte(`{"authorities":[],"format":"jurat/trust/v1","keys":[],"logs":[]}`)),
		"fingerprint %s, %v", digest, err)
	doc := trustFile(t)
	for _, later := range []string{"cas", "revoked", "revocation"} {
		must.Hold(t, !strings.Contains(doc, later), "a file without this member was written with %q", later)
	}
}

// trustFileWithCA has what the audit model's extensions added.
func trustFileWithCA(t testing.TB) string {
	t.Helper()
	key, template := newKey(t), caTemplate("root", 1)
	trusted := &trust.Trust{Format: trust.Format, CAs: []trust.CA{{Name: "Root CA", Certificate: certify(t, template, key.Public(), template, key).Raw,
		Roles: []evidence.Role{evidence.RoleAgent, evidence.RoleReviewer}, Custody: trust.ByOwner, Revocation: trust.ByCRL}}}
	doc := must.Get(trusted.Marshal())(t)
	return string(doc)
}

func TestCAsAreReadStrictly(t *testing.T) {
	doc := trustFileWithCA(t)
	ca := doc[strings.Index(doc, `"cas": [`)+len(`"cas": [`):]
	ca = ca[:strings.Index(ca, "}")+1]
	key := newKey(t)
	noCA := caTemplate("none", 1)
	noCA.IsCA, noCA.MaxPathLen = false, 0
	mayNot := caTemplate("root", 1)
	mayNot.KeyUsage = x509.KeyUsageDigitalSignature
	certificate := regexp.MustCompile(`"certificate": "[^"]*"`)
	must.Get(trust.Parse([]byte(doc)))(t)
	for _, tt := range []struct{ name, changed, says string }{
		{"no name", strings.Replace(doc, `"Root CA"`, `""`, 1), "cas/0: name is empty"},
		{"a custody that is none", strings.Replace(doc, `"owner"`, `"me"`, 1), `custody "me"`},
		{"a revocation that is none", strings.Replace(doc, `"crl"`, `"ocsp"`, 1), `revocation "ocsp"`},
		{"no roles", regexp.MustCompile(`(?s)"roles": \[.*?\]`).ReplaceAllString(doc, `"roles": []`), "roles is empty"},
		{"a role that is none", strings.Replace(doc, `"reviewer"`, `"king"`, 1), `"king"`},
		{"a role twice", strings.Replace(doc, `"reviewer"`, `"agent"`, 1), "there twice"},
		{"an unknown member", strings.Replace(doc, `"custody"`, `"x": 1, "custody"`, 1), "x"},
		{"a certificate that is none", strings.Replace(doc, `"certificate": "MI`, `"certificate": "MJ`, 1), "certificate"},
		{"a certificate twice", strings.Replace(doc, `"cas": [`, `"cas": [`+ca+",", 1), "cas/1: the certificate is there twice"},
		{"a certificate of no CA", certificate.ReplaceAllString(doc, `"certificate": "`+base64.StdEncoding.EncodeToString(certify(t, noCA, key.Public(), noCA, key).Raw)+`"`), "not that of a CA"},
		{"a certificate that may not certify", certificate.ReplaceAllString(doc, `"certificate": "`+base64.StdEncoding.EncodeToString(certify(t, mayNot, key.Public(), mayNot, key).Raw)+`"`), "not that of a CA"},
		{"an authority's revocation that is none", strings.Replace(trustFile(t), `"clock":`, `"revocation": "ocsp", "clock":`, 1), `authorities/0: revocation "ocsp"`},
	} {
		must.Hold(t, tt.changed != doc, "%s: the change does not apply to the file", tt.name)
		must.Refuse(t, tt.says, tt.name)(trust.Parse([]byte(tt.changed)))
	}
}

func FuzzParseTrust(f *testing.F) {
	f.Add([]byte(trustFileWithCA(f)))
	f.Add([]byte(`{"format":"jurat/trust/v1","keys":[],"authorities":[],"logs":[]}`))
	f.Add([]byte(`{"format":"jurat/trust/v1","keys":[{"name":"a","role":"agent"}],"authorities":[],"logs":["x"]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		trusted, err := trust.Parse(doc)
		if err != nil {
			return
		}
		again := must.Get(trusted.Marshal())(t)
		read, err := trust.Parse(again)
		must.Need(t, err == nil, "the written file is refused: %v\n%s", err, again)
		was, err := trusted.Fingerprint()
		is, err2 := read.Fingerprint()
		must.Need(t, err == nil && err2 == nil && was == is, "the written file has another fingerprint: %v, %v", err, err2)
	})
}

// trustFileWithLists has an authority that trusted lists name.
func trustFileWithLists(t testing.TB) string {
	t.Helper()
	file := jurattest.NewForStrangers(t).Trust(t)
	list := trust.ListVersion{Sequence: 7, Digest: evidence.DigestOf([]byte("list"))}
	at := func(year int) time.Time { return time.Date(year, 1, 2, 3, 4, 5, 0, time.UTC) }
	file.Lists = &trust.Lists{Journal: []evidence.Digest{{1}, {2}}, LOTL: list, Issued: at(2026), Territories: []string{"BE", "EE"}, GrantedSince: at(2020)}
	file.Authorities[0].Services = []trust.Service{{Territory: "BE", TSP: []string{"Notary", "Notaris"}, Name: "stamps", Type: "urn:type", List: trust.ServiceList{ListVersion: list, Issued: at(2026), NextUpdate: at(2027)},
		Status: []trust.ServiceStatus{{From: at(2019), Status: "urn:granted"}, {From: at(2018), Status: "urn:withdrawn", Type: "urn:other"}}}}
	doc := must.Get(file.Marshal())(t)
	return string(doc)
}

func TestListsInTrustFileAreReadStrictly(t *testing.T) {
	doc := trustFileWithLists(t)
	file, err := trust.Parse([]byte(doc))
	must.Need(t, err == nil && len(file.Authorities[0].Services) == 1 && file.Lists.LOTL.Sequence == 7, "%v\n%s", err, doc)
	compact := compactLists(t)
	for _, change := range slices.Concat(listChanges, otherListChanges) {
		changed := strings.Replace(compact, change.old, change.new, 1)
		must.Hold(t, changed != compact, "%s: nothing is changed in %s", change.name, compact)
		must.Refuse(t, change.says, change.name)(trust.Parse([]byte(changed)))
	}
}

// compactLists is that trust file in one line.
func compactLists(t testing.TB) string {
	return strings.NewReplacer("\n", "", "  ", "").Replace(trustFileWithLists(t))
}

// listChanges each break a rule about what trusted lists have said.
var listChanges = []struct{ name, old, new, says string }{
	{"services from nowhere", `"lists": {`, `"lists": null, "keys_of": {`, "keys_of"},
	{"an unknown member of lists", `"lotl": {`, `"lotx": 1, "lotl": {`, "lotx"},
	{"an unknown member of a service", `"territory": "BE"`, `"territory": "BE", "kind": 1`, "kind"},
	{"no certificate of the journal", `"oj": ["sha256:01`, `"oj": [], "xx": ["sha256:01`, "xx"},
	{"certificates out of order", `"oj": ["sha256:01`, `"oj": ["sha256:03`, "oj is not sorted"},
	{"a certificate twice", `"oj": ["sha256:01`, `"oj": ["sha256:02`, "oj is not sorted"},
	{"a digest that is none", `"oj": ["sha256:01`, `"oj": ["sha256:1`, "digest"},
	{"no digest of a list", `"digest": "` + evidence.DigestOf([]byte("list")).String(), `"digest": "sha256:` + strings.Repeat("0", 64), "digest"},
	{"a sequence of zero", `"sequence": 7`, `"sequence": 0`, "sequence"},
	{"a sequence that is no number", `"sequence": 7`, `"sequence": 7.5`, "sequence"},
	{"a territory in small letters", `"territory": "BE"`, `"territory": "be"`, "territory"},
	{"territories out of order", `"BE","EE"`, `"EE","BE"`, "territories"},
	{"a territory of three letters", `"BE","EE"`, `"BEL","EE"`, "territories"},
	{"no name of the provider", `"tsp": ["Notary"`, `"tsp": [""`, "tsp"},
	{"no name", `"name": "stamps"`, `"name": ""`, "name"},
	{"no type", `"type": "urn:type"`, `"type": ""`, "type"},
	{"no status", `"status": "urn:granted"`, `"status": ""`, "status/0"},
	{"no beginning", `"from": "2019-01-02T03:04:05Z",`, ``, "status/0"},
	{"a history out of order", `"from": "2018-`, `"from": "2020-`, "status/1"},
	{"two statuses of one time", `"from": "2018-`, `"from": "2019-`, "status/1"},
	{"a list that was never issued", `"issued": "2026-01-02T03:04:05Z",`, ``, "issued"},
}

// otherListChanges do, too, and no vector is made of them.
var otherListChanges = []struct{ name, old, new, says string }{
	{"an empty journal", `"oj": ["sha256:01` + strings.Repeat("0", 62) + `","sha256:02` + strings.Repeat("0", 62) + `"]`, `"oj": []`, "oj is empty"},
	{"a certificate of zeros", `"oj": ["sha256:01`, `"oj": ["sha256:00`, "oj has a digest"},
	{"lists that were never issued", `"issued": "2026-01-02T03:04:05Z","lotl"`, `"lotl"`, "lists: issued"},
	{"a provider without names", `"tsp": ["Notary","Notaris"]`, `"tsp": []`, "tsp"},
	{"a sequence too large", `"sequence": 7`, `"sequence": 2147483648`, "sequence"},
}

// TestTrustThatContradictsItself spoils a trust file in what no single text of it shows.
func TestTrustThatContradictsItself(t *testing.T) {
	for says, spoil := range map[string]func(*trust.Trust){
		"authorities/0: name is empty": func(f *trust.Trust) { f.Authorities[0].Name = "" },
		"the root is there twice":      func(f *trust.Trust) { f.Authorities = append(f.Authorities, f.Authorities[0]) },
		"status is empty":              func(f *trust.Trust) { f.Authorities[0].Services[0].Status = nil },
		"quorum is -1":                 func(f *trust.Trust) { f.Quorum = -1 },
	} {
		file := must.Get(trust.Parse([]byte(trustFileWithLists(t))))(t)
		spoil(file)
		doc := must.Get(file.Marshal())(t)
		must.Refuse(t, says)(trust.Parse(doc))
	}
}

// TestJoinedFilesDemandTheSame: of files that are joined, none may loosen what another demands.
func TestJoinedFilesDemandTheSame(t *testing.T) {
	w := threeWitnesses(t)
	one, two := w[0].String(), w[1].String()
	file := must.Get(trust.Parse([]byte(trustFileWithLists(t))))(t)
	other, lists := *file, *file.Lists
	lists.LOTL.Sequence++
	other.Lists = &lists
	for name, files := range map[string][]*trust.Trust{
		"quorum":    {{Witnesses: []string{one, two}, Quorum: 1}, {Witnesses: []string{one, two}, Quorum: 2}},
		"witnesses": {{Witnesses: []string{one}, Quorum: 1}, {Witnesses: []string{two}, Quorum: 1}},
		"lists":     {file, &other},
	} {
		must.Refuse(t, "", "files with another", name)(trust.Join(files...))
		must.Fail(t, nil, name)(trust.Join(files[0], files[0]))
	}
}

// TestServicesNeedLists: a trust file that names services must say from which lists they come.
func TestServicesNeedLists(t *testing.T) {
	file := must.Get(trust.Parse([]byte(trustFileWithLists(t))))(t)
	file.Lists = nil
	doc := must.Get(file.Marshal())(t)
	must.Refuse(t, "no lists")(trust.Parse(doc))
}

// TestTrustFileOrNot: a file of records given as a trust file is called that, but a trust file with a mistake is told its mistake, wherever
// its format stands.
func TestTrustFileOrNot(t *testing.T) {
	const other = "this is a record or a case file, and not a trust file"
	for doc, want := range map[string]string{
		`{"format":"jurat/trust/v1","authorities":[{"nam":"x"}]}`: "/authorities/0/nam: unknown member",
		`{"format":"jurat/trust/v1","cas":[{"mandate":{}}]}`:      "/cas/0/mandate: unknown member",
		`{"cas":[{"mandate":{}}],"format":"jurat/trust/v1"}`:      "/cas/0/mandate: unknown member",
		`{"format":"jurat/trust/v1","scitt":[]}`:                  "/scitt: unknown member",
		`{"keys":[],"format":7}`:                                  "/format: want a string, found a number",
		`{"format":"jurat/bundle/v1","records":[]}`:               other,
		`{"anchors":[],"format":"jurat/bundle/v1","records":[]}`:  other,
		`{"format":7,"records":[]}`:                               other,
		`{"digest":"sha256:00","payload":{}}`:                     other,
	} {
		_, err := trust.Parse([]byte(doc))
		must.Hold(t, err != nil && strings.HasSuffix(err.Error(), want), "%s: %v, want %s", doc, err, want)
	}
}

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
	r := must.Get(verify.File(file, o))(f)
	must.Need(f, r.Of(verify.Time).Status == verify.Proved && r.Of(verify.Content).Status == verify.Proved, "%+v", r.Details)
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
		must.Need(t, err == nil, "%v\n%s", err, changed)
		content := report.Of(verify.Content)
		must.Hold(t, content.Status != verify.Refuted, "the signed bytes are unchanged, but content is refuted: %+v", content)
	})
}

// insides are the parts that FuzzInside changes.
var insides = []func(t testing.TB, r *evidence.Record, o *verify.Options, choice []byte, number int64){
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // a token, not signed again
		r.Timestamps[0].Token = mutated(t, r.Timestamps[0].Token, choice)
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // TSTInfo, signed again by the authority
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *derToken) { k.Info.Mutate(choice) })
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // its signed attributes
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *derToken) { k.Signer.At(3).Mutate(choice) })
	},
	func(t testing.TB, r *evidence.Record, _ *verify.Options, choice []byte, _ int64) { // its certificates
		r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, func(k *derToken) { k.Data.At(3).Mutate(choice) })
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
		r.Log.Anchors = []evidence.Anchor{{Checkpoint: r.Log.Checkpoint, Timestamps: [][][]byte{{signedAnew(t, token, func(k *derToken) { k.Info.Mutate(choice) })}}}}
	},
}

// mutated changes DER as the bytes choose, perhaps in several places.
func mutated(t testing.TB, der, choice []byte) []byte {
	t.Helper()
	n := must.Get(parseDER(der))(t)
	for range 3 {
		if choice = n.Mutate(choice); len(choice) == 0 {
			break
		}
	}
	return n.Bytes()
}

// signedAnew changes a token and has the authority of houses sign it.
func signedAnew(t testing.TB, der []byte, change func(k *derToken)) []byte {
	t.Helper()
	k := parseDERToken(t, der)
	change(k)
	return k.Sign(t, jurattest.AuthorityKey(t, ""))
}

package evidence

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
)

var update = flag.Bool("update", false, "write testdata/vectors/sealing anew, after the format was changed on purpose")

var vectorsDir = filepath.Join("..", "testdata", "vectors", "sealing")

const vectorsFormat = "jurat/vectors/v1"

// manifest is manifest.json of vectorsDir. A program in any language can test itself with it. Texts are in files of
// their own, all other bytes in base64 or hexadecimal. The private keys are published, so they protect nothing.
type manifest struct {
	Format      string             `json:"format"`
	Keys        []keyVector        `json:"keys"`
	Canonical   string             `json:"canonical"` // file: documents and their canonical form, or where they go wrong
	Commitments []commitmentVector `json:"commitments"`
	Records     []recordVector     `json:"records"`
	Bundles     []bundleVector     `json:"bundles"`
	Acts        []actVector        `json:"acts"`     // of the operator: bodies, and those that are none
	Observed    []memberVector     `json:"observed"` // what recorders state, and what they must not
}

type keyVector struct {
	Algorithm Algorithm `json:"alg"`
	KeyID     KeyID     `json:"key_id"`
	Public    []byte    `json:"spki"`    // base64 of the DER SubjectPublicKeyInfo
	Private   string    `json:"private"` // file: PKCS #8 in PEM
}

type canonicalVector struct {
	Name      string `json:"name"`
	Document  []byte `json:"document"`            // base64
	Canonical []byte `json:"canonical,omitempty"` // base64; absent if the document is refused
	Digest    string `json:"digest,omitempty"`
	Refused   *place `json:"refused,omitempty"`
}

type place struct {
	Pointer string `json:"pointer"`
	Offset  int64  `json:"offset"`
}

type commitmentVector struct {
	Pointer    string `json:"pointer"`
	Salt       string `json:"salt"`  // hexadecimal
	Value      string `json:"value"` // canonical JSON
	Commitment string `json:"commitment"`
}

type recordVector struct {
	Name       string      `json:"name"`
	Draft      string      `json:"draft"` // file: the payload as the actor gave it
	RecordID   string      `json:"record_id"`
	Time       string      `json:"time"`            // fills in a timestamp that is missing
	Apart      []string    `json:"apart,omitempty"` // the n-th of them, from 0, has the salt 32n, 32n+1, … 32n+31
	Algorithms []Algorithm `json:"algorithms"`
	Canonical  string      `json:"canonical"` // file: the bytes that are signed
	Digest     Digest      `json:"digest"`
	Signatures []string    `json:"signatures"` // hexadecimal; ECDSA by RFC 6979, ML-DSA deterministic
	Imprint    string      `json:"imprint"`    // hexadecimal
	LogCounts  LogCounts   `json:"log_counts"` // what the log counted
	LogEntry   string      `json:"log_entry"`  // file
	File       string      `json:"file"`       // file: the record file
}

// A memberVector is a value of one member. If Refused is set, a reader must refuse it.
type memberVector struct {
	Name    string `json:"name"`
	Member  string `json:"member"`
	Value   string `json:"value"` // canonical JSON
	Refused bool   `json:"refused,omitzero"`
}

type bundleVector struct {
	Name    string   `json:"name"`
	Records []string `json:"records"` // names
	File    string   `json:"file"`
}

// vectorPlan lists what the vectors are made of.
var vectorPlan = []recordVector{
	{Name: "action-es256", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{ES256}},
	{Name: "action-rs256", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{RS256}},
	{Name: "action-ed25519", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{Ed25519}},
	{Name: "action-apart", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{ES256}, Apart: []string{"/context", "/prompt"}},
	{Name: "action-two-signers", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{Ed25519, ES256}},
	{Name: "human-review", Draft: "../../../evidence/testdata/source/human-review.json", Algorithms: []Algorithm{ES256}},
	{Name: "chain-step-1", Draft: "../../../evidence/testdata/source/chain-step-1.json", Algorithms: []Algorithm{Ed25519}},
	{Name: "chain-step-2", Draft: "../../../evidence/testdata/source/chain-step-2.json", Algorithms: []Algorithm{Ed25519}},
	{Name: "every-kind-of-value", Draft: "every-kind-of-value.draft.json", Algorithms: []Algorithm{Ed25519},
		Apart: []string{"/metadata/a~1b", "/metadata/m~0n", "/prompt", "/tools_used"}},
	{Name: "action-ml-dsa-65", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{MLDSA65}},
	{Name: "action-second-signature", Draft: "../../../evidence/testdata/source/action.json", Algorithms: []Algorithm{ES256, MLDSA65}},
	{Name: "expiry", Draft: "expiry.draft.json", Algorithms: []Algorithm{Ed25519}},
	{Name: "observed-call", Draft: "observed-call.draft.json", Algorithms: []Algorithm{Ed25519}, Apart: []string{"/prompt", "/request_body", "/response", "/response_body"}},
	{Name: "observed-span", Draft: "observed-span.draft.json", Algorithms: []Algorithm{Ed25519}},
	{Name: "recorder-event", Draft: "recorder-event.draft.json", Algorithms: []Algorithm{Ed25519}},
}

// makeVectors makes every file of vectorsDir.
func makeVectors(t *testing.T) map[string][]byte {
	files := map[string][]byte{"every-kind-of-value.draft.json": []byte(richPayload)}
	m := manifest{Format: vectorsFormat, Canonical: "canonical.json", Commitments: commitmentVectors(), Acts: actVectors(t), Observed: observedVectors()}
	files["expiry.draft.json"] = []byte(`{"action_type":"expiry","agent_id":"operator","chain_id":"operator-expiry","chain_position":1,"response":` +
		expiredBody + `,"timestamp":"2026-01-31T16:15:00Z"}`)
	files["observed-call.draft.json"] = []byte(document(ObservedCall, strings.Fields(observedMust+" model model_version chain_id request_body response_body prompt response")...))
	files["observed-span.draft.json"] = []byte(document(ObservedSpan, strings.Fields(observedMust+" prompt response")...))
	files["recorder-event.draft.json"] = []byte(strings.Replace(document(RecorderEvent, "agent_id", "timestamp", "response"), sample["response"], heartbeatBody, 1))
	files["canonical.json"] = indented(t, canonicalVectors(t))
	for _, algorithm := range Algorithms() {
		m.Keys = append(m.Keys, keyVector{algorithm, testSigner(t, algorithm).Info().KeyID,
			spki(t, testKey(t, algorithm).Public()), "../../../evidence/testdata/keys/" + keyFiles[algorithm]})
	}
	bundle, inBundle := &Bundle{}, bundleVector{Name: "chain", File: "chain.bundle.json"}
	for i, v := range vectorPlan {
		v.RecordID, v.Time = testID[:len(testID)-1]+strconv.FormatInt(int64(i+1), 16), FormatTime(testTime)
		r := sealVector(t, &v, files)
		m.Records = append(m.Records, v)
		if r.Payload.ActionType == ChainStep {
			bundle.Records, inBundle.Records = append(bundle.Records, r), append(inBundle.Records, v.Name)
		}
	}
	m.Bundles = []bundleVector{inBundle}
	files[inBundle.File] = marshalBundle(t, bundle)
	files["manifest.json"] = indented(t, m)
	return files
}

// sealVector seals one record, completes its vector and adds its files.
func sealVector(t *testing.T, v *recordVector, files map[string][]byte) *Record {
	doc, made := files[v.Draft]
	if !made {
		doc = readFile(t, filepath.Join(vectorsDir, v.Draft))
	}
	draft := must.Get(ParseDraft(doc))(t)
	s := Sealing{Time: testTime, RecordID: v.RecordID, Random: new(counter)}
	for _, algorithm := range v.Algorithms {
		s.Signers = append(s.Signers, testSigner(t, algorithm))
	}
	r := must.Get(draft.SealingApart(nil, v.Apart...).Seal(s))(t)
	if r.Payload.ChainID != "" {
		v.LogCounts.ChainSeq = 3
	}
	v.Canonical, v.LogEntry, v.File = v.Name+".canonical.json", v.Name+".entry.json", v.Name+".record.json"
	files[v.Canonical], files[v.LogEntry], files[v.File] = r.Canonical(), r.LogEntry(v.LogCounts), marshalRecord(t, r)
	v.Digest = r.Digest
	for _, signature := range r.Signatures {
		v.Signatures = append(v.Signatures, hex.EncodeToString(signature))
	}
	imprint := r.Imprint()
	v.Imprint = hex.EncodeToString(imprint[:])
	return r
}

func observedVectors() []memberVector {
	var vectors []memberVector
	for _, change := range observedChanges {
		vectors = append(vectors, memberVector{"observed: " + change.name, "observed", strings.Replace(wholeObserved, change.old, change.new, 1), !change.accepted})
	}
	for _, change := range bodyChanges {
		vectors = append(vectors, memberVector{"body: " + change.name, "request_body", change.new, !change.accepted})
	}
	return vectors
}

func commitmentVectors() []commitmentVector {
	var vectors []commitmentVector
	for i, d := range []Disclosure{{Pointer: "/prompt", Value: []byte(`"p"`)}, {Pointer: "/metadata/a~1b", Value: []byte(`{"é":[1.5,null]}`)}} {
		source := counter(32 * i)
		d.Salt = make([]byte, saltSize)
		source.Read(d.Salt)
		vectors = append(vectors, commitmentVector{d.Pointer, hex.EncodeToString(d.Salt), string(d.Value), d.commitment()})
	}
	return vectors
}

func canonicalVectors(t *testing.T) []canonicalVector {
	var vectors []canonicalVector
	for _, test := range accepted {
		vectors = append(vectors, canonicalVector{Name: test.name, Document: []byte(test.doc), Canonical: []byte(test.form),
			Digest: DigestOf([]byte(test.form)).String()})
	}
	for _, test := range refused {
		vectors = append(vectors, canonicalVector{Name: test.name, Document: []byte(test.doc), Refused: &place{test.pointer, test.offset}})
	}
	return vectors
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	doc := must.Get(json.MarshalIndent(v, "", "  "))(t)
	return append(doc, '\n')
}

// TestVectorsStand makes the vectors again and compares them with the committed ones, byte for byte.
func TestVectorsStand(t *testing.T) {
	files, dir := makeVectors(t), vectorsDir
	if *update {
		must.Do(t, os.RemoveAll(dir))
		must.Do(t, os.MkdirAll(dir, 0o755))
		for name, file := range files {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), file, 0o644))
		}
	}
	entries := must.Get(os.ReadDir(dir))(t)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	must.Equal(t, cmp.Diff(slices.Sorted(maps.Keys(files)), names), "")
	for name, file := range files {
		committed, err := os.ReadFile(filepath.Join(dir, name))
		must.Hold(t, err == nil && string(committed) == string(file), "%s: differs from the committed file (%v)", name, err)
	}
}

// TestVectors reads the committed vectors as another program would: it starts with the manifest and checks each
// statement of it.
func TestVectors(t *testing.T) {
	m := readManifest(t)
	for _, v := range m.Records {
		t.Run(v.Name, func(t *testing.T) { checkRecordVector(t, m, v) })
	}
	for _, v := range m.Commitments {
		salt := must.Get(hex.DecodeString(v.Salt))(t)
		d := (Disclosure{v.Pointer, salt, []byte(v.Value)})
		must.Hold(t, d.commitment() == v.Commitment, "commitment is %s, want %s", d.commitment(), v.Commitment)
	}
	for _, v := range m.Bundles {
		b, err := ParseBundle(readVector(t, v.File))
		must.Hold(t, err == nil && len(b.Records) == len(v.Records) && len(v.Records) != 0, "%s: %v", v.Name, err)
	}
}

func checkRecordVector(t *testing.T, m manifest, v recordVector) {
	r := must.Get(Open(readVector(t, v.File)))(t)
	imprint := r.Imprint()
	if string(r.Canonical()) != string(readVector(t, v.Canonical)) || r.Digest != v.Digest || hex.EncodeToString(imprint[:]) != v.Imprint ||
		string(r.LogEntry(v.LogCounts)) != string(readVector(t, v.LogEntry)) || r.Payload.RecordID != v.RecordID {
		t.Error("the record file is not the record of the manifest")
	}
	for i, algorithm := range v.Algorithms {
		key := m.Keys[slices.IndexFunc(m.Keys, func(k keyVector) bool { return k.Algorithm == algorithm })]
		public := must.Get(ParsePublicKey(key.Public))(t)
		must.Hold(t, r.Payload.Signers[i] == (SignerInfo{algorithm, key.KeyID}) && hex.EncodeToString(r.Signatures[i]) == v.Signatures[i],
			"signature %d is not the manifest's", i)
		must.Want(t, r.CheckSignature(i, public), nil)
	}
	err := r.CheckDisclosures()
	must.Hold(t, err == nil && len(r.Disclosures) == len(v.Apart), "disclosures: %v", err)
}

// readManifest fails if there are no vectors: otherwise a test would pass without checking anything.
func readManifest(t *testing.T) manifest {
	t.Helper()
	var m manifest
	must.Do(t, json.Unmarshal(readVector(t, "manifest.json"), &m))
	if m.Format != vectorsFormat || len(m.Keys) != len(Algorithms()) || len(m.Records) == 0 || len(m.Commitments) == 0 || len(m.Bundles) == 0 || len(m.Acts) == 0 {
		t.Fatal("the manifest has no vectors")
	}
	return m
}

func TestCanonicalVectors(t *testing.T) {
	var vectors []struct {
		Name, Document, Canonical, Digest string
		Refused                           *place
	}
	must.Do(t, json.Unmarshal(readVector(t, readManifest(t).Canonical), &vectors))
	must.Need(t, len(vectors) != 0, "no vectors")
	for _, v := range vectors {
		doc := must.Get(base64.StdEncoding.DecodeString(v.Document))(t)
		form, err := Canonical(doc)
		if v.Refused != nil {
			t.Run(v.Name, func(t *testing.T) { wantSyntax(t, err, v.Refused.Pointer, v.Refused.Offset, "") })
			continue
		}
		must.Hold(t, err == nil && base64.StdEncoding.EncodeToString(form) == v.Canonical && DigestOf(form).String() == v.Digest,
			"%s: form is %s, %v", v.Name, form, err)
	}
}

func readVector(t *testing.T, name string) []byte {
	t.Helper()
	return readFile(t, filepath.Join(vectorsDir, name))
}

// An actVector is the body of an act of the operator. If Refused is set, a reader must refuse it.
type actVector struct {
	Name       string     `json:"name"`
	ActionType ActionType `json:"action_type"`
	ChainID    string     `json:"chain_id"`
	Response   string     `json:"response"` // canonical JSON
	Refused    bool       `json:"refused,omitzero"`
}

const (
	aDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	bDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

	expiredBody = `{"before":"2025-07-01T00:00:00Z","by":"A. Person","count":2,"from":256,"places":"` + aDigest + `","reason":"their time is over","to":512}`
	exceptBody  = `{"before":"2025-07-01T00:00:00Z","by":"A. Person","count":1,"except":["order-17","order-18"],"from":0,"places":"` + aDigest +
		`","reason":"their time is over","to":1}`
)

// A badAct is the body of an act with one change, for which it is refused.
type badAct struct{ name, of, old, new string }

// actVectors are the accepted forms of some acts of the operator, and bodies that each break one rule.
func actVectors(t *testing.T) []actVector {
	t.Helper()
	return slices.Concat(expiryVectors(t), trialVectors(t), recorderVectors(t))
}

// makeActs returns the vectors of one action type: good bodies by name, and bad ones.
func makeActs(t *testing.T, prefix string, action ActionType, chain string, good [][2]string, bad []badAct) []actVector {
	t.Helper()
	var list []actVector
	for _, g := range good {
		list = append(list, actVector{Name: g[0], Response: g[1]})
	}
	for _, b := range bad {
		body := strings.Replace(b.of, b.old, b.new, 1)
		must.Need(t, body != b.of, "%s: %s: the change does not apply to the body", prefix, b.name)
		if form, err := Canonical([]byte(body)); err != nil || string(form) != body {
			t.Fatalf("%s: %s: the vector is not canonical, so the rule under test would not be reached: %v", prefix, b.name, err)
		}
		list = append(list, actVector{Name: b.name, Response: body, Refused: true})
	}
	for i := range list {
		list[i].Name, list[i].ActionType, list[i].ChainID = prefix+": "+list[i].Name, action, chain
	}
	return append(list, actVector{prefix + ": in another chain", action, OperatorPrefix + "keys", good[0][1], true})
}

func expiryVectors(t *testing.T) []actVector {
	t.Helper()
	return makeActs(t, "expiry", Expiry, OperatorPrefix+"expiry", [][2]string{{"expired", expiredBody}, {"expired, but for two chains", exceptBody}}, []badAct{
		{"by nobody", expiredBody, `"A. Person"`, `""`},
		{"without by", expiredBody, `"by":"A. Person",`, ``},
		{"without a reason", expiredBody, `"reason":"their time is over",`, ``},
		{"with an empty reason", expiredBody, `"their time is over"`, `""`},
		{"with a reason that is null", expiredBody, `"their time is over"`, `null`},
		{"with a member more", expiredBody, `{`, `{"at":1,`},
		{"nothing has expired", expiredBody, `"count":2`, `"count":0`},
		{"more than there were", expiredBody, `"count":2`, `"count":257`},
		{"a count that is a text", expiredBody, `"count":2`, `"count":"2"`},
		{"from before the beginning", expiredBody, `"from":256`, `"from":-1`},
		{"from the end", expiredBody, `"from":256`, `"from":512`},
		{"to behind every log", expiredBody, `"to":512`, `"to":9007199254740992`},
		{"without an end", expiredBody, `,"to":512`, ``},
		{"without places", expiredBody, `"places":"` + aDigest + `",`, ``},
		{"with places of zeros", expiredBody, aDigest, "sha256:" + strings.Repeat("0", 64)},
		{"with places in capitals", expiredBody, aDigest, "sha256:" + strings.Repeat("A", 64)},
		{"before no time", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-32T00:00:00Z`},
		{"before a time that is not UTC", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-01T00:00:00+02:00`},
		{"but for no chain", exceptBody, `["order-17","order-18"]`, `[]`},
		{"but for null", exceptBody, `["order-17","order-18"]`, `null`},
		{"but for a chain that is not in a list", exceptBody, `["order-17","order-18"]`, `"order-17"`},
		{"but for a chain without a name", exceptBody, `"order-17"`, `""`},
		{"but for a chain twice", exceptBody, `"order-17"`, `"order-18"`},
		{"but for chains that are not sorted", exceptBody, `"order-17","order-18"`, `"order-18","order-17"`},
	})
}

const (
	startBody  = `{"configuration":"` + aDigest + `","event":"start","mode":"closed","vantage":"proxy","version":"jurat 1.9"}`
	stopBody   = `{"event":"stop","reason":"SIGTERM"}`
	stopCounts = `{"calls":3,"event":"stop","reason":"SIGTERM","since":"2026-01-31T16:14:00Z"}`
	modeBody   = `{"event":"mode","mode":"open","reason":"the disk is full"}`
	setBody    = `{"configuration":"` + bDigest + `","event":"configuration","reason":"read again"}`
	gapBody    = `{"event":"gap","missed":[{"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"},{"agent":"a","calls":1,"minute":"2026-01-31T16:15:00Z"}],"reason":"the disk is full"}`
	crashBody  = `{"agent":"a","began":"2026-01-31T16:14:00.5Z","event":"lost_in_crash","protocol":"openai.chat","request_sha256":"` + aDigest + `"}`
	toolBody   = `{"after":"` + bDigest + `","agent":"a","before":"` + aDigest + `","event":"tool_definition_changed","server":"files","tool":"read"}`
	recorderID = "recorder-gate"
)

// recorderVectors are events of recorders, and bodies that each break one rule.
func recorderVectors(t *testing.T) []actVector {
	t.Helper()
	all := makeActs(t, "recorder", RecorderEvent, recorderID, [][2]string{{"start", startBody}, {"stop", stopBody}, {"heartbeat", heartbeatBody}, {"mode", modeBody},
		{"configuration", setBody}, {"gap", gapBody}, {"lost in crash", crashBody}, {"tool definition changed", toolBody}, {"stop that counts", stopCounts}}, []badAct{
		{"an event that is none", stopBody, `"stop"`, `"pause"`},
		{"without an event", stopBody, `"event":"stop",`, ``},
		{"without a reason", stopBody, `,"reason":"SIGTERM"`, ``},
		{"an empty reason", stopBody, `"SIGTERM"`, `""`},
		{"a member of another event", stopBody, `"event":"stop"`, `"event":"stop","mode":"open"`},
		{"an unknown member", stopBody, `"SIGTERM"`, `"SIGTERM","zone":1`},
		{"a mode that is none", modeBody, `"open"`, `"ajar"`},
		{"without a mode", modeBody, `"mode":"open",`, ``},
		{"a vantage that is none", startBody, `"proxy"`, `"moon"`},
		{"settings of zeros", startBody, aDigest, "sha256:0000000000000000000000000000000000000000000000000000000000000000"},
		{"without settings", startBody, `"configuration":"` + aDigest + `",`, ``},
		{"fewer calls than none", heartbeatBody, `"calls":3`, `"calls":-1`},
		{"half a call", heartbeatBody, `"calls":3`, `"calls":3.5`},
		{"since no time", heartbeatBody, `16:14:00Z`, `16:14:00`},
		{"without calls", heartbeatBody, `"calls":3,`, ``},
		{"nothing missed", gapBody, `{"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"},{"agent":"a","calls":1,"minute":"2026-01-31T16:15:00Z"}`, ``},
		{"no call missed", gapBody, `"calls":2`, `"calls":0`},
		{"missed by nobody", gapBody, `"agent":"b"`, `"agent":""`},
		{"missed at no time", gapBody, `16:14:00Z`, `16:14`},
		{"missed out of order", gapBody, `16:14:00Z`, `16:16:00Z`},
		{"missed twice", gapBody, `"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"`, `"agent":"a","calls":2,"minute":"2026-01-31T16:15:00Z"`},
		{"missed, and more", gapBody, `"calls":2`, `"calls":2,"errors":1`},
		{"a crash at no time", crashBody, `"2026-01-31T16:14:00.5Z"`, `""`},
		{"a crash without a digest", crashBody, `,"request_sha256":"` + aDigest + `"`, ``},
		{"a tool without a name", toolBody, `"tool":"read"`, `"tool":""`},
		{"a tool without a definition", toolBody, `"after":"` + bDigest + `",`, ``},
		{"a stop that counts since no time", stopCounts, `,"since":"2026-01-31T16:14:00Z"`, ``},
		{"a stop that counts nothing since a time", stopCounts, `"calls":3,`, ``},
		{"a stop that counts fewer than none", stopCounts, `"calls":3`, `"calls":-1`},
		{"a stop that counts since another text", stopCounts, `16:14:00Z`, `16:14`},
		{"a stop that counts without a reason", stopCounts, `,"reason":"SIGTERM"`, ``},
	})
	// A recorder's event may stand in any chain that is neither a trial's nor the operator's.
	return slices.DeleteFunc(all, func(v actVector) bool { return v.ChainID != recorderID })
}

const (
	cancelledBody = `{"by":"A. Person","event":"cancelled","reason":"submitted by mistake","trial":"trial-1"}`
	resumedBody   = `{"by":"A. Person","event":"resumed","reason":"it was none","trial":"trial-1"}`
	takenBody     = `{"by":"A. Person","event":"taken","record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reviewer":"Mia Brandt","trial":"trial-1"}`
	leftBody      = `{"by":"A. Person","event":"left","reason":"on leave","record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reviewer":"Mia Brandt","trial":"trial-1"}`
)

func trialVectors(t *testing.T) []actVector {
	t.Helper()
	return makeActs(t, "trial", TrialEvent, OperatorPrefix+"trials", [][2]string{{"cancelled", cancelledBody}, {"resumed", resumedBody}, {"taken", takenBody}, {"left", leftBody}}, []badAct{
		{"an event that is none", takenBody, `"taken"`, `"paused"`},
		{"without an event", takenBody, `"event":"taken",`, ``},
		{"by nobody", takenBody, `"A. Person"`, `""`},
		{"without by", cancelledBody, `"by":"A. Person",`, ``},
		{"cancelled for no reason", cancelledBody, `"reason":"submitted by mistake",`, ``},
		{"resumed for an empty reason", resumedBody, `it was none`, ``},
		{"left for an empty reason", leftBody, `on leave`, ``},
		{"left for a reason that is null", leftBody, `"on leave"`, `null`},
		{"cancelled, with a reviewer", cancelledBody, `"trial":`, `"reviewer":"Mia Brandt","trial":`},
		{"cancelled, with a record", cancelledBody, `"trial":`, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","trial":`},
		{"taken by no reviewer", takenBody, `"reviewer":"Mia Brandt",`, ``},
		{"taken by a reviewer without a name", takenBody, `"Mia Brandt"`, `" "`},
		{"taken by two lines", takenBody, `Mia Brandt`, `Mia\nBrandt`},
		{"nothing taken", takenBody, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123",`, ``},
		{"a digest taken", takenBody, `019b76da-a800-7af4-9dc1-0b1e7f1aa123`, aDigest},
		{"left without a record", leftBody, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123",`, ``},
		{"taken of no trial", takenBody, `"trial-1"`, `"order-17"`},
		{"without a trial", takenBody, `,"trial":"trial-1"`, ``},
		{"with a member more", takenBody, `"by"`, `"at":1,"by"`},
	})
}

package jurat

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"jurat/internal/must"
)

// A rule says what the packages of a folder may import beside the standard library, and why.
type importRule struct {
	folder string
	may    []string // import paths, or prefixes that end in a slash
	why    string
}

const (
	jsonLibrary = "github.com/go-json-experiment/json/"
	cryptobyte  = "golang.org/x/crypto/cryptobyte"
	logHashing  = "golang.org/x/mod/sumdb/"
	postQuantum = "github.com/cloudflare/circl/sign/mldsa/mldsa65" // of a large library, this algorithm
)

var importRules = []importRule{
	{"jurat/evidence", []string{"jurat/internal/sigkey", "jurat/internal/jsonform", "jurat/property", jsonLibrary, cryptobyte + "/", logHashing, postQuantum},
		"the format knows nothing that is built on it, and compiles to WebAssembly; ML-DSA, which Go has not, is a signature like the others"},
	{"jurat/evidence/operator", []string{"jurat/evidence", jsonLibrary, logHashing},
		"it reads what the operator states from payloads and notes, and knows no log"},
	{"jurat/evidence/observed", []string{"jurat/evidence", jsonLibrary},
		"it makes and reads what recorders seal, and finds facts in bytes; it knows no recorder, and reads no messages"},
	{"jurat/verify/trust", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/fault", "jurat/timestamp", cryptobyte + "/", jsonLibrary, logHashing},
		"what a reader believes is asked about keys, certificates and tokens, and finds nothing against a record by itself"},
	{"jurat/timestamp", []string{"jurat/internal/fault", "jurat/internal/sigkey", cryptobyte + "/"},
		"time stamps are worth something without jurat, and compile to WebAssembly"},
	{"jurat/property", []string{"jurat/internal/jsonform", "filippo.io/", jsonLibrary}, "what is proved of a value needs no record: the commitment stands for it; P-256 in constant time is the Go team's own, as modules"},
	{"jurat/trustlist", nil, "trusted lists are read with the standard library alone, and compile to WebAssembly"},
	{"jurat/jury", []string{"jurat/evidence", jsonLibrary},
		"the deliberation is arithmetic: no input, no output, no clock, no vendor"},
	{"jurat/scitt", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/cbor", "jurat/internal/fault", "jurat/internal/sigkey", logHashing},
		"statements around records, and those of others; whose keys count is for verify to say"},
	{"jurat/internal/duties", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/jury", "jurat/internal/ledger", "jurat/internal/plural", "jurat/verify", jsonLibrary},
		"it counts what a log has and how that was verified; what a law asks is for people to judge"},
	{"jurat/internal/cbor", nil, "it knows CBOR, and not what it says"},
	{"jurat/verify", []string{"jurat/scitt", "jurat/verify/trust", "jurat/evidence", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/property", "jurat/timestamp", "jurat/jury", "jurat/internal/fault", "jurat/internal/inorder", "jurat/internal/plural", jsonLibrary, logHashing},
		"a verifier depends on nothing of the program whose work it checks, and compiles to WebAssembly"},

	{"jurat/reputation", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/verify", "jurat/verify/trust", jsonLibrary, logHashing},
		"what it counts is verified before, and everyone can compute it again, also in a browser"},

	{"jurat/internal/card", []string{"jurat/evidence", "jurat/verify", "jurat/verify/trust", "jurat/internal/keys", "github.com/go-jose/go-jose/v4", jsonLibrary},
		"a card is checked by the caller's trust file and key events; it fetches nothing"},

	{"jurat/client", []string{"jurat/api", "jurat/evidence", "jurat/property", "jurat/verify", "jurat/verify/trust", jsonLibrary},
		"owners of keys sign with the format alone, and check what comes back as everybody does; it never sees the server"},

	{"jurat/tiles", []string{"jurat/evidence/operator", logHashing, "golang.org/x/sync/errgroup"},
		"any log of this layout is read with it, by who checks signatures himself; it never sees the server"},

	{"jurat/internal/sigkey", []string{postQuantum, cryptobyte + "/"},
		"it knows keys and algorithms, and not what is signed; ML-DSA, which Go has not, is an algorithm like the others"},
	{"jurat/internal/jsonform", []string{jsonLibrary}, "it knows documents, and not what they say"},
	{"jurat/internal/dertest", []string{"jurat/internal/must"}, "it knows DER, and not what is in it"},
	{"jurat/internal/plural", nil, "it counts things, whatever they are"},
	{"jurat/internal/inorder", []string{"jurat/internal/fault", "golang.org/x/sync/semaphore"}, "it shares out work, whatever that is"},
	{"jurat/internal/fault", nil, "it catches what panics, whatever was read"},
	{"jurat/internal/atomicfile", []string{"golang.org/x/sys/unix"}, "it writes files and knows nothing of what is in them"},
	{"jurat/internal/lock", []string{"jurat/evidence"}, "who is at work on something is for the operating system to say; among machines package postgres says it"},
	{"jurat/internal/filestore", []string{"jurat/internal/atomicfile", jsonLibrary}, "it keeps small files wherever that is, encrypts them where others can read them, and knows nothing of what is in them"},
	{"jurat/internal/keys", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/verify/trust", "jurat/internal/fault", "jurat/internal/filestore", "jurat/internal/names", "jurat/internal/token", jsonLibrary},
		"what the log says of keys is read from records, wherever they are kept, and private keys know no record"},
	{"jurat/internal/token", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/fault", jsonLibrary},
		"a helper keeps keys somewhere: its client knows the protocol, and no kind of token; vendors' libraries are in a module of their own"},
	{"jurat/internal/ca", []string{"jurat/evidence", "jurat/verify/trust", "jurat/internal/filestore", "jurat/internal/keys", "jurat/internal/lock", "jurat/internal/names", "jurat/internal/token", jsonLibrary},
		"a CA may be on a machine without a log: it knows its own folder, and no log"},
	{"jurat/internal/tokentest", []string{"jurat/internal/must"}, "it makes tokens for tests, and knows nothing of how they are used"},
	{"jurat/internal/erasure", []string{"jurat/evidence", "jurat/internal/fault", "jurat/evidence/operator", "jurat/jury", "jurat/internal/filestore", "jurat/internal/ledger", "jurat/internal/ledger/fsck", "jurat/internal/ledger/storage", "jurat/property", jsonLibrary},
		"it keeps what opens commitments, destroys it, and looks for what is left"},
	{"jurat/internal/eutrust", []string{"jurat/evidence", "jurat/trustlist", "jurat/verify/trust", "jurat/internal/atomicfile"}, "it carries what trusted lists say into a trust file; what they say is for trustlist to read"},
	{"jurat/internal/listtest", []string{"jurat/internal/must"}, "it writes lists, and knows nothing of how they are read"},
	{"jurat/internal/stamping", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/timestamp", "jurat/verify/trust", "jurat/internal/fault", "jurat/internal/filestore", "jurat/internal/ledger", "jurat/internal/ledger/storage", "jurat/internal/witness",
		jsonLibrary, logHashing},
		"authorities are asked about imprints, and told nothing else; records get what the answers prove"},
	{"jurat/internal/witness", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/tiles", "jurat/verify/trust", "jurat/internal/fault", "jurat/internal/filestore", "jurat/internal/ledger", "jurat/internal/sqlitefile", jsonLibrary, logHashing},
		"it knows checkpoints, and nothing else of what is in a log"},
	{"jurat/internal/subject", []string{"github.com/klauspost/compress/zstd", "golang.org/x/text/unicode/norm", "jurat/evidence", "jurat/evidence/observed", "jurat/internal/convo", "jurat/internal/observe", "jurat/verify", jsonLibrary, "jurat/verify/trust"}, "the agent under trial is data; who verifies its records hands them over"},
	{"jurat/internal/juror", []string{"jurat/jury", "jurat/internal/subject", jsonLibrary},
		"what all jurors share, models and rules: it knows neither models nor rules"},
	{"jurat/internal/juror/rules", []string{"jurat/internal/juror", "jurat/evidence", "jurat/jury", "jurat/internal/subject", jsonLibrary},
		"a rule juror sees the evidence, and nothing of how acts are kept, and asks no model"},
	{"jurat/internal/juror/model", []string{"jurat/evidence", "jurat/jury", "jurat/internal/subject", "jurat/internal/juror", "jurat/internal/llm", jsonLibrary},
		"it turns a brief into words and an answer into an opinion, for every vendor's model and every way of calling it"},
	{"jurat/internal/ledger/storage", []string{"jurat/evidence", "jurat/internal/fault", "jurat/evidence/operator", "jurat/internal/plural", logHashing, "github.com/klauspost/compress/zstd", "golang.org/x/crypto/cryptobyte", "golang.org/x/crypto/cryptobyte/asn1"},
		"it says what a database keeps of a log, and knows neither database nor ledger"},
	{"jurat/internal/ledger/brief", []string{"jurat/evidence", "jurat/internal/fault", "jurat/jury", "jurat/internal/ledger/storage", "jurat/internal/subject", jsonLibrary},
		"what a list shows, and what names what, is read beside the payloads, and seals nothing"},
	{"jurat/internal/ledger/fsck", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/inorder", "jurat/internal/ledger/brief", "jurat/internal/ledger/storage", "jurat/internal/plural", logHashing},
		"it examines what is stored, also where no ledger opens, and mends nothing"},
	{"jurat/internal/ledger", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/atomicfile", "jurat/internal/fault", "jurat/internal/ledger/brief", "jurat/internal/keys", "jurat/internal/ledger/storage", "jurat/internal/names", "jurat/internal/plural", "jurat/verify", "jurat/property", jsonLibrary, logHashing},
		"it knows the contract of stores, and no store"},
	{"jurat/internal/ledger/sqlite", []string{"jurat/evidence", "jurat/internal/fault", "jurat/internal/atomicfile", "jurat/internal/ledger/storage", "jurat/internal/plural", jsonLibrary, logHashing, "modernc.org/sqlite/"},
		"one database, behind the contracts of the log's store and of what is sealed apart"},
	{"jurat/internal/postgres", []string{"jurat/evidence", "jurat/internal/filestore", "jurat/internal/ledger/storage", "jurat/internal/lock", logHashing, "github.com/jackc/pgx/v5/"},
		"one database, behind the contracts of the log's store, of the file store and of locks"},
	{"jurat/internal/sqlitefile", []string{"modernc.org/sqlite"}, "it opens files, and knows nothing of what is in them"},
	{"jurat/internal/storetest", []string{"jurat/evidence", "jurat/internal/filestore", "jurat/internal/ledger/storage", "jurat/internal/lock", "jurat/internal/must", logHashing, "github.com/google/go-cmp/"},
		"one suite for every store of a log, one for every file store, and one for locks, so it knows none"},
	{"jurat/internal/panel", []string{"jurat/evidence", "jurat/jury", "jurat/internal/config", "jurat/internal/juror", "jurat/internal/juror/model", "jurat/internal/juror/rules",
		"jurat/internal/llm/", "jurat/internal/subject", jsonLibrary, "golang.org/x/time/rate"},
		"it joins plan, adapters and jurors, and knows nothing of how acts are kept"},
	{"jurat/internal/trial", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/internal/juror", "jurat/internal/ledger", "jurat/internal/ledger/brief", "jurat/internal/lock", "jurat/internal/subject", jsonLibrary},
		"it joins jury and ledger, for every panel and every store"},
	{"jurat/internal/acts", []string{"jurat/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/access", "jurat/internal/keys", "jurat/internal/ledger", "jurat/internal/ledger/brief", "jurat/internal/names", "jurat/internal/trial", "jurat/property", jsonLibrary},
		"who may do what is decided here, whatever front it was asked through"},
	{"jurat/internal/find", []string{"jurat/api", "jurat/evidence", "jurat/internal/fault", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/internal/ledger", "jurat/internal/ledger/storage", "jurat/internal/convo", "jurat/internal/observe", "jurat/internal/trial", "jurat/jury", jsonLibrary, "jurat/internal/sqlitefile", "golang.org/x/text/", "modernc.org/sqlite/"},
		"it finds records and trials in a log, and does not know who asks"},
	{"jurat/internal/docket", []string{"jurat/api", "jurat/evidence", "jurat/jury", "jurat/verify", "jurat/verify/trust", "jurat/internal/access", "jurat/internal/find", "jurat/internal/inorder", "jurat/internal/ledger", "jurat/internal/stats", "jurat/internal/trial", "jurat/reputation", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/internal/ledger/storage", "jurat/internal/llm", "jurat/internal/convo", "jurat/internal/observe", "jurat/internal/subject", jsonLibrary},
		"what was found is shown alike by the server and the command line, and who may see it is for them to say"},
	{"jurat/internal/schedule", []string{"jurat/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/fault", "jurat/internal/ledger", "jurat/internal/lock", "jurat/internal/postgres", "jurat/internal/sqlitefile", "jurat/internal/subject", "jurat/internal/trial", jsonLibrary,
		"github.com/coder/websocket", "github.com/jackc/pgx/v5/", "golang.org/x/sync/semaphore", "modernc.org/sqlite/"},
		"it says when trials are held and by which process, for every panel, and carries what happens in them to connected watchers"},
	{"jurat/internal/words", []string{"jurat/evidence", "jurat/jury", "jurat/verify", "jurat/verify/trust"},
		"it names what records and reports speak of, and knows nothing of where that is shown"},
	{"jurat/internal/incident", []string{"jurat/evidence", "jurat/jury", "jurat/property", "jurat/verify", "jurat/verify/trust", "jurat/internal/words", jsonLibrary},
		"a statement is built from what verification proved"},
	{"jurat/examples", nil, "documents, and the names of their folders"},
	{"jurat/internal/openssl", []string{"jurat/evidence", "jurat/timestamp", "jurat/verify/trust"},
		"it writes what another program needs, wherever the files are to go"},
	{"jurat/internal/pages", []string{"jurat/api", "jurat/evidence", "jurat/jury", "jurat/reputation", "jurat/verify", "jurat/verify/trust", "jurat/evidence/observed", "jurat/internal/incident", "jurat/internal/docket", "jurat/internal/subject", "jurat/internal/trial", "jurat/internal/words", jsonLibrary},
		"what people see is made of records and of the read model of trials: no ledger, no network, and no question who looks"},
	{"jurat/internal/installation", []string{"jurat/scitt", "jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/timestamp", "jurat/verify", "jurat/verify/trust", "jurat/internal/fault", "jurat/internal/atomicfile", "jurat/internal/filestore", "jurat/internal/lock", "jurat/internal/postgres", "jurat/internal/keys", "jurat/internal/ledger", "jurat/internal/ledger/fsck", "jurat/internal/ledger/storage", "jurat/internal/ledger/sqlite", "jurat/internal/stamping", "jurat/internal/token", "jurat/internal/erasure", "jurat/internal/witness", "github.com/jackc/pgx/v5/", jsonLibrary, logHashing, "jurat/internal/inorder", "jurat/internal/ledger/brief"},
		"it puts together what lives in a data folder"},
	{"jurat/internal/bench", nil, "it has benchmarks alone"},
	{"jurat/api", []string{"jurat/evidence", "jurat/jury"}, "what travels is plain data, digests, and of a trial what the jury came to"},
	{"jurat/internal/names", []string{"jurat/evidence", "golang.org/x/text/"}, "which names may be used is the same wherever one comes in"},
	{"jurat/internal/access", []string{"jurat/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/ledger", "jurat/internal/names"}, "who may do what stands in the log alone"},
	{"jurat/internal/openid", []string{"jurat/evidence", "jurat/internal/access", "jurat/internal/names", "github.com/coreos/go-oidc/v3/oidc", "golang.org/x/oauth2"},
		"it asks who somebody is, and opens no session"},
	{"jurat/internal/openid/openidtest", nil, "a server for tests knows the protocol from its documents, not from the client"},
	{"jurat/internal/server", []string{"jurat/api", "jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/reputation", "jurat/tiles", "jurat/verify", "jurat/verify/trust", "jurat/examples", "jurat/internal/", "jurat/property", jsonLibrary, logHashing, "github.com/klauspost/compress/gzhttp", "jurat/evidence/observed", "github.com/prometheus/client_golang/", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight", "golang.org/x/time/rate"},
		"it shows an installation to people and programs; it has no rules of its own on what counts"},
	{"jurat/jurattest", []string{"jurat/scitt", "jurat/evidence", "jurat/evidence/operator", "jurat/timestamp", "jurat/jury", "jurat/verify", "jurat/verify/trust", "jurat/internal/ledger", "jurat/internal/must",
		"jurat/internal/ledger/sqlite", "jurat/internal/subject", "jurat/internal/trial", jsonLibrary, logHashing},
		"the test kit puts the real parts together, the default store among them, in a temporary folder"},
	{"jurat/internal/stats", []string{"jurat/evidence", "jurat/jury", "jurat/internal/fault", "jurat/internal/jsonform", "jurat/internal/ledger", "jurat/internal/trial", jsonLibrary}, "it counts what the records of trials say"},
	{"jurat/internal/importing", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/convo", "jurat/internal/fault", "jurat/internal/observe", "jurat/internal/subject", "jurat/internal/telemetry", jsonLibrary, "golang.org/x/sync/errgroup"},
		"it reads files that others wrote, and makes acts of them; which log they go to, and who signs, is for its caller to know"},
	{"jurat/internal/relay", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/fault", "jurat/internal/observe", jsonLibrary}, "it copies bytes and shows them to a witness, in the words of records; what is sealed of them is for the witness to know"},
	{"jurat/internal/recording", []string{"jurat/api", "jurat/evidence", "jurat/evidence/observed", "jurat/internal/atomicfile", "jurat/internal/convo", "jurat/internal/lock", "jurat/internal/observe", "jurat/internal/plural", "jurat/internal/relay", jsonLibrary},
		"it seals what passes a relay; which log that is, and who may call, is for its caller to know"},
	{"jurat/recorder", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/access", "jurat/internal/acts", "jurat/internal/card", "jurat/internal/installation", "jurat/internal/recording", "jurat/internal/relay", jsonLibrary},
		"it puts a recorder on an installation, for programs in Go and for the command; how calls pass and are sealed is for others to know"},
	{"jurat/internal/webhook", []string{"code.dny.dev/ssrf", "github.com/standard-webhooks/standard-webhooks/libraries/go"}, "it sends messages, whatever they say"},
	{"jurat/internal/config", []string{"jurat/evidence", "jurat/jury", "jurat/internal/fault", "jurat/internal/llm", "jurat/internal/names", "jurat/internal/webhook", jsonLibrary, "go.yaml.in/yaml/v3"},
		"it says who is to sit, and asks no model"},
	{"jurat/internal/llm", []string{"jurat/internal/jsonform", "jurat/internal/convo", jsonLibrary, "golang.org/x/time/rate"}, "one call to one model over HTTP: it knows nothing of jurat, and no vendor's library comes along"},
	{"jurat/internal/convo", []string{"jurat/evidence", "jurat/evidence/observed", jsonLibrary}, "what vendors publish is data: it is read alike, whoever sent, recorded or brought it"},
	{"jurat/internal/observe", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/fault", "jurat/internal/jsonform", "jurat/internal/convo", "jurat/internal/observe/otlp", jsonLibrary, "github.com/andybalholm/brotli", "github.com/klauspost/compress/zstd"},
		"what the bytes of a call say is read from them alone, so that recorders and verifiers read the same"},
	{"jurat/internal/observe/otlp", []string{jsonLibrary}, "it knows the form of what telemetry tells, and the names of acts in it; verifiers read it, so it has no protobuf"},
	{"jurat/internal/telemetry", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/observe", "jurat/internal/observe/otlp", jsonLibrary, "go.opentelemetry.io/proto/otlp/", "google.golang.org/protobuf/", "jurat/internal/recording", "golang.org/x/sync/errgroup", "google.golang.org/protobuf/encoding/protowire"},
		"it finds acts in what it is sent, and has them sealed by its caller's recorder"},
	{"jurat/internal/llm/llmtest", []string{"jurat/internal/llm", jsonLibrary}, "servers for tests know the vendors' protocols from their documents, not from the adapters"},
	{"jurat/internal/browsertest", []string{"github.com/chromedp/"}, "it drives a browser for tests, whatever page is in it"},
	{"jurat/internal/must", nil, "it ends tests, whatever they test"},
	{"jurat/internal/disktest", []string{"jurat/internal/must"}, "it gives tests a disk, whatever is kept on it"},
	{"jurat/internal/pgtest", []string{"jurat/internal/must", "github.com/jackc/pgx/v5"}, "it runs a server for tests, whatever is kept on it"},
	{"jurat/internal/portal", []string{"jurat/internal/words", jsonLibrary}, "a page, its texts and the packed program in it: what that program may see stands below"},
	{"jurat/internal/portal/visit", []string{"jurat/scitt", "jurat/evidence/operator", "jurat/verify/trust", "jurat/evidence", "jurat/verify", "jurat/internal/incident", "jurat/internal/words", jsonLibrary},
		"what runs in the visitor's browser is what verifies everywhere, and words"},
	{"jurat/internal/portal/build", nil, "it calls the compiler"},
	{"jurat/internal/portal/verifier", nil, "outside of a browser it only says where it runs; what the program in the browser may see stands below"},
	{"jurat/internal/tracing", []string{"jurat/internal/trial", "go.opentelemetry.io/proto/otlp/", "google.golang.org/protobuf/proto"}, "what is sent to a collector knows events and routes, and no record"},
	{"jurat/cmd/jurat", []string{"jurat/", jsonLibrary, logHashing, "github.com/alecthomas/kong/", "golang.org/x/term/", "golang.org/x/text/width", "golang.org/x/sys/unix", "golang.org/x/crypto/sha3", "golang.org/x/crypto/x509roots/fallback"},
		"the command wires everything"},
	{"jurat/cmd/jurat-lab", []string{"jurat/evidence", "jurat/jury", "jurat/internal/atomicfile", "jurat/internal/config", "jurat/internal/fault", "jurat/internal/installation", "jurat/internal/jsonform", "jurat/internal/ledger",
		"jurat/internal/panel", "jurat/internal/plural", "jurat/internal/stats", "jurat/internal/subject", "jurat/internal/trial", jsonLibrary, "github.com/alecthomas/kong/", "golang.org/x/crypto/x509roots/fallback", "golang.org/x/sync/errgroup"},
		"it holds trials in an installation of its own and measures them, for every panel"},
	{"jurat", nil, "the tour imports nothing"},
}

// wiring is what only commands may import.
var onlyInCommand = []string{"flag", "os/signal", "github.com/alecthomas/kong"}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		i := slices.IndexFunc(importRules, func(r importRule) bool { return r.folder == p.ImportPath })
		if i < 0 {
			t.Errorf("%s has no import rule: add one that says what it may import, and why", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			if !allowed(importRules[i].may, path) {
				t.Errorf("%s imports %s, which its rule does not allow: %s", p.ImportPath, path, importRules[i].why)
			}
			if slices.Contains(onlyInCommand, path) && !strings.HasPrefix(p.ImportPath, "jurat/cmd/") {
				t.Errorf("%s imports %s: flags and signals are for commands", p.ImportPath, path)
			}
		}
	}
}

// TestUnsafeStoresAreForTests: a log that syncs nothing is made by tests and their kit alone.
func TestUnsafeStoresAreForTests(t *testing.T) {
	found := must.Get(exec.Command("grep", "-rl", "--include=*.go", "sqlite.UnsafeCreate(", ".").Output())(t)
	for file := range strings.FieldsSeq(string(found)) {
		if !strings.HasSuffix(file, "_test.go") && file != "./jurattest/jurattest.go" {
			t.Errorf("%s makes a log that may be lost", file)
		}
	}
}

func TestEveryImportRuleHasItsPackage(t *testing.T) {
	packages := listPackages(t)
	for _, r := range importRules {
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.ImportPath == r.folder }) {
			t.Errorf("there is a rule for %s, but no such package", r.folder)
		}
	}
}

// TestTourNamesEveryPackage: doc.go must name every package.
func TestTourNamesEveryPackage(t *testing.T) {
	tour := must.Get(os.ReadFile("doc.go"))(t)
	words := strings.FieldsFunc(string(tour), func(r rune) bool { return !strings.ContainsRune("/-0123456789", r) && (r < 'a' || r > 'z') })
	for _, p := range listPackages(t) {
		path := strings.TrimPrefix(p.ImportPath, "jurat/")
		if !slices.Contains(words, path) && !slices.Contains(words, strings.TrimPrefix(path, "internal/")) {
			t.Errorf("the tour in doc.go does not name %s", p.ImportPath)
		}
	}
}

// allowed accepts the standard library, whose paths have no dot in their first element, and what the rule names.
func allowed(may []string, path string) bool {
	first, _, _ := strings.Cut(path, "/")
	if first != "jurat" && !strings.Contains(first, ".") {
		return true
	}
	return slices.ContainsFunc(may, func(m string) bool {
		return path == strings.TrimSuffix(m, "/") || strings.HasSuffix(m, "/") && strings.HasPrefix(path, m)
	})
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	packages := listed(t, os.Environ(), "./...")
	if len(packages) < 10 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	return packages
}

func listed(t *testing.T, environment []string, what string) []goPackage {
	t.Helper()
	return goList[goPackage](t, environment, "-json=ImportPath,Imports", what)
}

// goList returns the answer of 'go list' on packages, with the members that P has.
func goList[P any](t *testing.T, environment []string, args ...string) []P {
	t.Helper()
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Env = environment
	out := must.Get(list.Output())(t)
	var packages []P
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p P
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// TestPurePackagesBuildForWebAssembly builds the packages that must run in a browser.
func TestPurePackagesBuildForWebAssembly(t *testing.T) {
	build := exec.Command("go", "build", "jurat/evidence/...", "jurat/timestamp", "jurat/trustlist", "jurat/jury", "jurat/scitt", "jurat/verify/...", "jurat/reputation/...", "jurat/internal/observe")
	build.Env = browser()
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func browser() []string { return append(os.Environ(), "GOOS=js", "GOARCH=wasm") }

// TestPortalProgramImports checks a package that 'go list' leaves out, because it is built for the browser only.
func TestPortalProgramImports(t *testing.T) {
	may := []string{"jurat/internal/portal/visit", "jurat/internal/words", jsonLibrary}
	found := listed(t, browser(), "./internal/portal/verifier")
	for _, p := range found {
		for _, path := range p.Imports {
			if !allowed(may, path) {
				t.Errorf("%s imports %s: it must only pass the answers of package visit to the browser", p.ImportPath, path)
			}
		}
	}
	if len(found) != 1 {
		t.Errorf("found %v", found)
	}
}

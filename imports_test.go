package jurat

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
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
	{"jurat/evidence", []string{"jurat/internal/kit/sigkey", "jurat/evidence/jsonform", "jurat/evidence/property", jsonLibrary, cryptobyte + "/", logHashing, postQuantum},
		"the format knows nothing that is built on it, and compiles to WebAssembly; ML-DSA, which Go has not, is a signature like the others"},
	{"jurat/evidence/operator", []string{"jurat/evidence", jsonLibrary, logHashing},
		"it reads what the operator states from payloads and notes, and knows no log"},
	{"jurat/evidence/observed", []string{"jurat/evidence", jsonLibrary},
		"it makes and reads what recorders seal, and finds facts in bytes; it knows no recorder, and reads no messages"},
	{"jurat/verify/trust", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/fault", "jurat/timestamp", cryptobyte + "/", jsonLibrary, logHashing},
		"what a reader believes is asked about keys, certificates and tokens, and finds nothing against a record by itself"},
	{"jurat/timestamp", []string{"jurat/internal/kit/fault", "jurat/internal/kit/sigkey", cryptobyte + "/"},
		"time stamps are worth something without jurat, and compile to WebAssembly"},
	{"jurat/evidence/property", []string{"jurat/evidence/jsonform", "filippo.io/", jsonLibrary}, "what is proved of a value needs no record: the commitment stands for it; P-256 in constant time is the Go team's own, as modules"},
	{"jurat/verify/eulist", nil, "trusted lists are read with the standard library alone, and compile to WebAssembly"},
	{"jurat/jury", []string{"jurat/evidence", jsonLibrary},
		"the deliberation is arithmetic: no input, no output, no clock, no vendor"},
	{"jurat/evidence/scitt", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/cbor", "jurat/internal/kit/fault", "jurat/internal/kit/sigkey", logHashing},
		"statements around records, and those of others; whose keys count is for verify to say"},
	{"jurat/internal/log/duties", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/jury", "jurat/internal/log/ledger", "jurat/internal/kit/plural", "jurat/verify", jsonLibrary},
		"it counts what a log has and how that was verified; what a law asks is for people to judge"},
	{"jurat/internal/kit/cbor", nil, "it knows CBOR, and not what it says"},
	{"jurat/verify", []string{"jurat/evidence/scitt", "jurat/verify/trust", "jurat/evidence", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/evidence/property", "jurat/timestamp", "jurat/jury", "jurat/internal/kit/fault", "jurat/internal/kit/inorder", "jurat/internal/kit/plural", jsonLibrary, logHashing},
		"a verifier depends on nothing of the program whose work it checks, and compiles to WebAssembly"},

	{"jurat/reputation", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/verify", "jurat/verify/trust", jsonLibrary, logHashing},
		"what it counts is verified before, and everyone can compute it again, also in a browser"},

	{"jurat/internal/court/card", []string{"jurat/evidence", "jurat/verify", "jurat/verify/trust", "jurat/internal/log/keys", "github.com/go-jose/go-jose/v4", jsonLibrary},
		"a card is checked by the caller's trust file and key events; it fetches nothing"},

	{"jurat/client", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/property", "jurat/verify", "jurat/verify/trust", jsonLibrary},
		"owners of keys sign with the format alone, and check what comes back as everybody does; it never sees the server"},

	{"jurat/client/tiles", []string{"jurat/evidence/operator", logHashing, "golang.org/x/sync/errgroup"},
		"any log of this layout is read with it, by who checks signatures himself; it never sees the server"},

	{"jurat/internal/kit/sigkey", []string{postQuantum, cryptobyte + "/"},
		"it knows keys and algorithms, and not what is signed; ML-DSA, which Go has not, is an algorithm like the others"},
	{"jurat/evidence/jsonform", []string{jsonLibrary}, "it knows documents, and not what they say"},
	{"jurat/internal/kit/plural", nil, "it counts things, whatever they are"},
	{"jurat/internal/kit/inorder", []string{"jurat/internal/kit/fault", "golang.org/x/sync/semaphore"}, "it shares out work, whatever that is"},
	{"jurat/internal/kit/fault", nil, "it catches what panics, whatever was read"},
	{"jurat/internal/kit/atomicfile", []string{"golang.org/x/sys/unix"}, "it writes files and knows nothing of what is in them"},
	{"jurat/internal/log/lock", []string{"jurat/evidence"}, "who is at work on something is for the operating system to say; among machines package postgres says it"},
	{"jurat/internal/log/filestore", []string{"jurat/internal/kit/atomicfile", jsonLibrary}, "it keeps small files wherever that is, encrypts them where others can read them, and knows nothing of what is in them"},
	{"jurat/internal/log/keys", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/verify/trust", "jurat/internal/kit/fault", "jurat/internal/log/filestore", "jurat/internal/log/names", "jurat/internal/log/token", jsonLibrary},
		"what the log says of keys is read from records, wherever they are kept, and private keys know no record"},
	{"jurat/internal/log/token", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/fault", jsonLibrary},
		"a helper keeps keys somewhere: its client knows the protocol, and no kind of token; vendors' libraries are in a module of their own"},
	{"jurat/internal/log/ca", []string{"jurat/evidence", "jurat/verify/trust", "jurat/internal/log/filestore", "jurat/internal/log/keys", "jurat/internal/log/lock", "jurat/internal/log/names", "jurat/internal/log/token", jsonLibrary},
		"a CA may be on a machine without a log: it knows its own folder, and no log"},
	{"jurat/internal/log/erasure", []string{"jurat/evidence", "jurat/internal/kit/fault", "jurat/evidence/operator", "jurat/jury", "jurat/internal/log/filestore", "jurat/internal/log/ledger", "jurat/internal/log/ledger/fsck", "jurat/internal/log/ledger/storage", "jurat/evidence/property", jsonLibrary},
		"it keeps what opens commitments, destroys it, and looks for what is left"},
	{"jurat/internal/log/eutrust", []string{"jurat/evidence", "jurat/verify/eulist", "jurat/verify/trust", "jurat/internal/kit/atomicfile"}, "it carries what trusted lists say into a trust file; what they say is for trustlist to read"},
	{"jurat/internal/test/listtest", []string{"jurat/internal/test/must"}, "it writes lists, and knows nothing of how they are read"},
	{"jurat/internal/log/stamping", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/timestamp", "jurat/verify/trust", "jurat/internal/kit/fault", "jurat/internal/log/filestore", "jurat/internal/log/ledger", "jurat/internal/log/ledger/storage", "jurat/internal/log/witness",
		jsonLibrary, logHashing},
		"authorities are asked about imprints, and told nothing else; records get what the answers prove"},
	{"jurat/internal/log/witness", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/client/tiles", "jurat/verify/trust", "jurat/internal/kit/fault", "jurat/internal/log/filestore", "jurat/internal/log/ledger", "jurat/internal/log/ledger/sqlite", jsonLibrary, logHashing},
		"it knows checkpoints, and nothing else of what is in a log"},
	{"jurat/internal/court/subject", []string{"github.com/klauspost/compress/zstd", "golang.org/x/text/unicode/norm", "jurat/evidence", "jurat/evidence/observed", "jurat/internal/tap/convo", "jurat/internal/tap/traffic", "jurat/verify", jsonLibrary, "jurat/verify/trust"}, "the agent under trial is data; who verifies its records hands them over"},
	{"jurat/internal/court/juror", []string{"jurat/jury", "jurat/internal/court/subject", jsonLibrary},
		"what all jurors share, models and rules: it knows neither models nor rules"},
	{"jurat/internal/court/juror/rules", []string{"jurat/internal/court/juror", "jurat/evidence", "jurat/jury", "jurat/internal/court/subject", jsonLibrary},
		"a rule juror sees the evidence, and nothing of how acts are kept, and asks no model"},
	{"jurat/internal/court/juror/model", []string{"jurat/evidence", "jurat/jury", "jurat/internal/court/subject", "jurat/internal/court/juror", "jurat/internal/court/llm", jsonLibrary},
		"it turns a brief into words and an answer into an opinion, for every vendor's model and every way of calling it"},
	{"jurat/internal/log/ledger/storage", []string{"jurat/evidence", "jurat/internal/kit/fault", "jurat/evidence/operator", "jurat/internal/kit/plural", logHashing, "github.com/klauspost/compress/s2", "github.com/klauspost/compress/zstd", "golang.org/x/crypto/cryptobyte", "golang.org/x/crypto/cryptobyte/asn1"},
		"it says what a database keeps of a log, and knows neither database nor ledger"},
	{"jurat/internal/log/ledger/brief", []string{"jurat/evidence", "jurat/internal/kit/fault", "jurat/jury", "jurat/internal/log/ledger/storage", "jurat/internal/court/subject", jsonLibrary},
		"what a list shows, and what names what, is read beside the payloads, and seals nothing"},
	{"jurat/internal/log/ledger/fsck", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/inorder", "jurat/internal/log/ledger/brief", "jurat/internal/log/ledger/storage", "jurat/internal/kit/plural", logHashing},
		"it examines what is stored, also where no ledger opens, and mends nothing"},
	{"jurat/internal/log/ledger", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/atomicfile", "jurat/internal/kit/fault", "jurat/internal/log/ledger/brief", "jurat/internal/log/keys", "jurat/internal/log/ledger/storage", "jurat/internal/log/names", "jurat/internal/kit/plural", "jurat/verify", "jurat/evidence/property", jsonLibrary, logHashing},
		"it knows the contract of stores, and no store"},
	{"jurat/internal/log/ledger/sqlite", []string{"jurat/evidence", "jurat/internal/kit/fault", "jurat/internal/kit/atomicfile", "jurat/internal/log/ledger/storage", "jurat/internal/kit/plural", jsonLibrary, logHashing, "modernc.org/sqlite/"},
		"one database, behind the contracts of the log's store and of what is sealed apart"},
	{"jurat/internal/log/postgres", []string{"jurat/evidence", "jurat/internal/log/filestore", "jurat/internal/log/ledger/storage", "jurat/internal/log/lock", logHashing, "github.com/jackc/pgx/v5/"},
		"one database, behind the contracts of the log's store, of the file store and of locks"},
	{"jurat/internal/test/storetest", []string{"jurat/evidence", "jurat/internal/log/filestore", "jurat/internal/log/ledger/storage", "jurat/internal/log/lock", "jurat/internal/test/must", logHashing, "github.com/google/go-cmp/"},
		"one suite for every store of a log, one for every file store, and one for locks, so it knows none"},
	{"jurat/internal/court/panel", []string{"jurat/evidence", "jurat/jury", "jurat/internal/court/juror", "jurat/internal/court/juror/model", "jurat/internal/court/juror/rules",
		"jurat/internal/court/llm/", "jurat/internal/court/subject", "jurat/internal/kit/fault", "jurat/internal/kit/webhook", "jurat/internal/log/names", jsonLibrary, "go.yaml.in/yaml/v3", "golang.org/x/time/rate"},
		"it joins plan, adapters and jurors, and knows nothing of how acts are kept"},
	{"jurat/internal/court/trial", []string{"jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/internal/court/juror", "jurat/internal/log/ledger", "jurat/internal/log/ledger/brief", "jurat/internal/log/lock", "jurat/internal/court/subject", jsonLibrary},
		"it joins jury and ledger, for every panel and every store"},
	{"jurat/internal/court/acts", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/log/access", "jurat/internal/log/keys", "jurat/internal/log/ledger", "jurat/internal/log/ledger/brief", "jurat/internal/log/names", "jurat/internal/court/trial", "jurat/evidence/property", jsonLibrary},
		"who may do what is decided here, whatever front it was asked through"},
	{"jurat/internal/web/find", []string{"jurat/client/api", "jurat/evidence", "jurat/internal/kit/fault", "jurat/internal/kit/inorder", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/internal/log/ledger", "jurat/internal/log/ledger/storage", "jurat/internal/tap/convo", "jurat/internal/tap/traffic", "jurat/internal/court/trial", "jurat/jury", jsonLibrary, "jurat/internal/log/ledger/sqlite", "golang.org/x/text/", "modernc.org/sqlite/"},
		"it finds records and trials in a log, and does not know who asks"},
	{"jurat/internal/web/docket", []string{"jurat/client/api", "jurat/evidence", "jurat/jury", "jurat/verify", "jurat/verify/trust", "jurat/internal/log/access", "jurat/internal/web/find", "jurat/internal/kit/inorder", "jurat/internal/log/ledger", "jurat/internal/court/stats", "jurat/internal/court/trial", "jurat/reputation", "jurat/evidence/observed", "jurat/evidence/operator", "jurat/internal/log/ledger/storage", "jurat/internal/court/llm", "jurat/internal/tap/convo", "jurat/internal/tap/traffic", "jurat/internal/court/subject", jsonLibrary},
		"what was found is shown alike by the server and the command line, and who may see it is for them to say"},
	{"jurat/internal/court/schedule", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/kit/fault", "jurat/internal/log/ledger", "jurat/internal/log/lock", "jurat/internal/log/postgres", "jurat/internal/log/ledger/sqlite", "jurat/internal/court/subject", "jurat/internal/court/trial", jsonLibrary,
		"github.com/coder/websocket", "github.com/jackc/pgx/v5/", "golang.org/x/sync/semaphore", "modernc.org/sqlite/"},
		"it says when trials are held and by which process, for every panel, and carries what happens in them to connected watchers"},
	{"jurat/internal/web/words", []string{"jurat/evidence", "jurat/evidence/property", "jurat/jury", "jurat/verify", "jurat/verify/trust", jsonLibrary},
		"it says what records and reports mean, from what verification proved, and knows nothing of where that is shown"},
	{"jurat/examples", nil, "documents, and the names of their folders"},
	{"jurat/internal/web/openssl", []string{"jurat/evidence", "jurat/timestamp", "jurat/verify/trust"},
		"it writes what another program needs, wherever the files are to go"},
	{"jurat/internal/web/pages", []string{"jurat/client/api", "jurat/evidence", "jurat/jury", "jurat/reputation", "jurat/verify", "jurat/verify/trust", "jurat/evidence/observed", "jurat/internal/web/docket", "jurat/internal/court/subject", "jurat/internal/court/trial", "jurat/internal/web/words", jsonLibrary},
		"what people see is made of records and of the read model of trials: no ledger, no network, and no question who looks"},
	{"jurat/internal/log/installation", []string{"jurat/evidence/scitt", "jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/timestamp", "jurat/verify", "jurat/verify/trust", "jurat/internal/kit/fault", "jurat/internal/kit/atomicfile", "jurat/internal/log/filestore", "jurat/internal/log/lock", "jurat/internal/log/postgres", "jurat/internal/log/keys", "jurat/internal/log/ledger", "jurat/internal/log/ledger/fsck", "jurat/internal/log/ledger/storage", "jurat/internal/log/ledger/sqlite", "jurat/internal/log/stamping", "jurat/internal/log/token", "jurat/internal/log/erasure", "jurat/internal/log/witness", "github.com/jackc/pgx/v5/", jsonLibrary, logHashing, "jurat/internal/kit/inorder", "jurat/internal/log/ledger/brief"},
		"it puts together what lives in a data folder"},
	{"jurat/internal/test/bench", nil, "it has benchmarks alone"},
	{"jurat/client/api", []string{"jurat/evidence", "jurat/jury"}, "what travels is plain data, digests, and of a trial what the jury came to"},
	{"jurat/internal/log/names", []string{"jurat/evidence", "golang.org/x/text/"}, "which names may be used is the same wherever one comes in"},
	{"jurat/internal/log/access", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/operator", "jurat/internal/log/ledger", "jurat/internal/log/names"}, "who may do what stands in the log alone"},
	{"jurat/internal/web/openid", []string{"jurat/evidence", "jurat/internal/log/access", "jurat/internal/log/names", "github.com/coreos/go-oidc/v3/oidc", "golang.org/x/oauth2"},
		"it asks who somebody is, and opens no session"},
	{"jurat/internal/web/server", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/operator", "jurat/jury", "jurat/reputation", "jurat/client/tiles", "jurat/verify", "jurat/verify/trust", "jurat/examples", "jurat/internal/", "jurat/evidence/property", jsonLibrary, logHashing, "github.com/klauspost/compress/gzhttp", "jurat/evidence/observed", "github.com/prometheus/client_golang/", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight", "golang.org/x/time/rate"},
		"it shows an installation to people and programs; it has no rules of its own on what counts"},
	{"jurat/internal/test/jurattest", []string{"jurat/evidence/scitt", "jurat/evidence", "jurat/evidence/operator", "jurat/timestamp", "jurat/jury", "jurat/verify", "jurat/verify/trust", "jurat/internal/log/ledger", "jurat/internal/test/must",
		"jurat/internal/log/ledger/sqlite", "jurat/internal/court/subject", "jurat/internal/court/trial", jsonLibrary, logHashing},
		"the test kit puts the real parts together, the default store among them, in a temporary folder"},
	{"jurat/internal/court/stats", []string{"jurat/evidence", "jurat/jury", "jurat/internal/kit/fault", "jurat/evidence/jsonform", "jurat/internal/log/ledger", "jurat/internal/court/trial", jsonLibrary}, "it counts what the records of trials say"},
	{"jurat/internal/tap/importing", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/tap/convo", "jurat/internal/kit/fault", "jurat/internal/tap/traffic", "jurat/internal/court/subject", "jurat/internal/tap/telemetry", jsonLibrary, "golang.org/x/sync/errgroup"},
		"it reads files that others wrote, and makes acts of them; which log they go to, and who signs, is for its caller to know"},
	{"jurat/internal/tap/relay", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/kit/fault", "jurat/internal/tap/traffic", jsonLibrary}, "it copies bytes and shows them to a witness, in the words of records; what is sealed of them is for the witness to know"},
	{"jurat/internal/tap/sealer", []string{"jurat/client/api", "jurat/evidence", "jurat/evidence/observed", "jurat/internal/kit/atomicfile", "jurat/internal/tap/convo", "jurat/internal/log/lock", "jurat/internal/tap/traffic", "jurat/internal/kit/plural", "jurat/internal/tap/relay", jsonLibrary},
		"it seals what passes a relay; which log that is, and who may call, is for its caller to know"},
	{"jurat/recorder", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/log/access", "jurat/internal/court/acts", "jurat/internal/court/card", "jurat/internal/log/installation", "jurat/internal/tap/sealer", "jurat/internal/tap/relay", jsonLibrary},
		"it puts a recorder on an installation, for programs in Go and for the command; how calls pass and are sealed is for others to know"},
	{"jurat/internal/kit/webhook", []string{"code.dny.dev/ssrf", "github.com/standard-webhooks/standard-webhooks/libraries/go"}, "it sends messages, whatever they say"},
	{"jurat/internal/court/llm", []string{"jurat/evidence/jsonform", "jurat/internal/tap/convo", jsonLibrary, "golang.org/x/time/rate"}, "one call to one model over HTTP: it knows nothing of jurat, and no vendor's library comes along"},
	{"jurat/internal/tap/convo", []string{"jurat/evidence", "jurat/evidence/observed", jsonLibrary}, "what vendors publish is data: it is read alike, whoever sent, recorded or brought it"},
	{"jurat/internal/tap/traffic", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/kit/fault", "jurat/evidence/jsonform", "jurat/internal/tap/convo", "jurat/internal/tap/traffic/otlp", jsonLibrary, "github.com/andybalholm/brotli", "github.com/klauspost/compress/zstd"},
		"what the bytes of a call say is read from them alone, so that recorders and verifiers read the same"},
	{"jurat/internal/tap/traffic/otlp", []string{jsonLibrary}, "it knows the form of what telemetry tells, and the names of acts in it; verifiers read it, so it has no protobuf"},
	{"jurat/internal/tap/telemetry", []string{"jurat/evidence", "jurat/evidence/observed", "jurat/internal/tap/traffic", "jurat/internal/tap/traffic/otlp", jsonLibrary, "go.opentelemetry.io/proto/otlp/", "google.golang.org/protobuf/", "jurat/internal/tap/sealer", "golang.org/x/sync/errgroup", "google.golang.org/protobuf/encoding/protowire"},
		"it finds acts in what it is sent, and has them sealed by its caller's recorder"},
	{"jurat/internal/court/llm/llmtest", []string{"jurat/internal/court/llm", jsonLibrary}, "servers for tests know the vendors' protocols from their documents, not from the adapters"},
	{"jurat/internal/test/rig", []string{"jurat/internal/test/must", "github.com/jackc/pgx/v5"}, "it runs what is outside of the program, and knows protocols from their documents"},
	{"jurat/internal/test/browsertest", []string{"github.com/chromedp/"}, "it drives a browser for tests, whatever page is in it"},
	{"jurat/internal/test/must", nil, "it ends tests, whatever they test"},
	{"jurat/internal/web/portal", []string{"jurat/internal/web/words", jsonLibrary}, "a page, its texts and the packed program in it: what that program may see stands below"},
	{"jurat/internal/web/portal/visit", []string{"jurat/evidence/scitt", "jurat/evidence/operator", "jurat/verify/trust", "jurat/evidence", "jurat/verify", "jurat/internal/web/words", jsonLibrary},
		"what runs in the visitor's browser is what verifies everywhere, and words"},
	{"jurat/internal/web/portal/build", nil, "it calls the compiler"},
	{"jurat/internal/web/portal/verifier", nil, "outside of a browser it only says where it runs; what the program in the browser may see stands below"},
	{"jurat/internal/web/tracing", []string{"jurat/internal/court/trial", "go.opentelemetry.io/proto/otlp/", "google.golang.org/protobuf/proto"}, "what is sent to a collector knows events and routes, and no record"},
	{"jurat/cmd/jurat", []string{"jurat/", jsonLibrary, logHashing, "github.com/alecthomas/kong/", "golang.org/x/term/", "golang.org/x/text/width", "golang.org/x/sys/unix", "golang.org/x/crypto/sha3", "golang.org/x/crypto/x509roots/fallback"},
		"the command wires everything"},
	{"jurat/cmd/jurat-lab", []string{"jurat/evidence", "jurat/jury", "jurat/internal/kit/atomicfile", "jurat/internal/kit/fault", "jurat/internal/log/installation", "jurat/evidence/jsonform", "jurat/internal/log/ledger",
		"jurat/internal/court/panel", "jurat/internal/kit/plural", "jurat/internal/court/stats", "jurat/internal/court/subject", "jurat/internal/court/trial", jsonLibrary, "github.com/alecthomas/kong/", "golang.org/x/crypto/x509roots/fallback", "golang.org/x/sync/errgroup"},
		"it holds trials in an installation of its own and measures them, for every panel"},
	{"jurat", nil, "the tour imports nothing"},
}

// onlyInCommand is what only commands may import.
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
			must.Hold(t, allowed(importRules[i].may, path), "%s imports %s, which its rule does not allow: %s", p.ImportPath, path, importRules[i].why)
			must.Hold(t, !slices.Contains(onlyInCommand, path) || strings.HasPrefix(p.ImportPath, "jurat/cmd/"),
				"%s imports %s: flags and signals are for commands", p.ImportPath, path)
		}
	}
}

// TestUnsafeStoresAreForTests: a log that syncs nothing is made by tests and their kit alone.
func TestUnsafeStoresAreForTests(t *testing.T) {
	found := must.Get(exec.Command("grep", "-rl", "--include=*.go", "sqlite.UnsafeCreate(", ".").Output())(t)
	for file := range strings.FieldsSeq(string(found)) {
		must.Hold(t, strings.HasSuffix(file, "_test.go") || file == "./internal/test/jurattest/jurattest.go", "%s makes a log that may be lost", file)
	}
}

func TestEveryImportRuleHasItsPackage(t *testing.T) {
	packages := listPackages(t)
	for _, r := range importRules {
		must.Hold(t, slices.ContainsFunc(packages, func(p goPackage) bool { return p.ImportPath == r.folder }),
			"there is a rule for %s, but no such package", r.folder)
	}
}

// TestTourNamesEveryPackage: doc.go must name every package.
func TestTourNamesEveryPackage(t *testing.T) {
	tour := must.Get(os.ReadFile("doc.go"))(t)
	words := strings.FieldsFunc(string(tour), func(r rune) bool { return !strings.ContainsRune("/-0123456789", r) && (r < 'a' || r > 'z') })
	for _, p := range listPackages(t) {
		path := strings.TrimPrefix(p.ImportPath, "jurat/")
		if inside, is := strings.CutPrefix(path, "internal/"); is {
			_, path, _ = strings.Cut(inside, "/") // the tour lists packages under their room
		}
		must.Hold(t, slices.Contains(words, path), "the tour in doc.go does not name %s", p.ImportPath)
	}
}

// mostCalls are how many calls between packages the walks of the tour may have, by the words with which they begin.
var mostCalls = map[string]int{"the agent calls its model": 12, "'jurat seal', or a POST": 6, "a case": 25}

// TestTourOfCalls: where the tour says "relay: sealer.Begin", package sealer has a function or method of that name, and relay uses one.
func TestTourOfCalls(t *testing.T) {
	folders, walk, caller, calls := map[string]string{}, "", "", map[string]int{}
	for _, p := range listPackages(t) {
		folders[path.Base(p.ImportPath)] = "." + strings.TrimPrefix(p.ImportPath, "jurat")
	}
	_, ways, _ := strings.Cut(string(must.Get(os.ReadFile("doc.go"))(t)), "# An answer")
	ways, _, _ = strings.Cut(ways, "# A file is verified")
	by, call := regexp.MustCompile(`^ *(?:cmd/)?([a-z]+): `), regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w+)`)
	for row := range strings.Lines(ways) {
		step, said, _ := strings.Cut(strings.TrimPrefix(row, "//\t"), "   ")
		if !strings.HasPrefix(step, " ") {
			walk = step
		}
		for part := range strings.SplitSeq(said, "; ") {
			if named := by.FindStringSubmatch(part); named != nil {
				caller = named[1]
			}
			for _, c := range call.FindAllStringSubmatch(part, -1) {
				declared, _ := namesIn(t, folders[c[1]])
				_, used := namesIn(t, folders[caller])
				must.Hold(t, declared[c[2]] && used[c[2]], "%s: %s calls %s: package %[2]s uses no such name, or there is none", step, caller, c[0])
				calls[walk]++
			}
		}
	}
	for walk, most := range mostCalls {
		must.Hold(t, calls[walk] > most/2 && calls[walk] <= most, "the walk %q has %d calls, want at most %d", walk, calls[walk], most)
	}
}

// namesIn returns the functions and methods that a package declares, and the names that it selects of others.
func namesIn(t *testing.T, folder string) (declared, used map[string]bool) {
	declared, used = map[string]bool{}, map[string]bool{}
	for _, file := range must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = true
			case *ast.SelectorExpr:
				used[n.Sel.Name] = true
			}
			return true
		})
	}
	return declared, used
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
	must.Need(t, len(packages) >= 10, "go list found only %d packages", len(packages))
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
	build := exec.Command("go", "build", "jurat/evidence/...", "jurat/timestamp", "jurat/jury", "jurat/verify/...", "jurat/reputation/...", "jurat/internal/tap/traffic")
	build.Env = browser()
	out, err := build.CombinedOutput()
	must.Hold(t, err == nil, "%v\n%s", err, out)
}

func browser() []string { return append(os.Environ(), "GOOS=js", "GOARCH=wasm") }

// TestPortalProgramImports checks a package that 'go list' leaves out, because it is built for the browser only.
func TestPortalProgramImports(t *testing.T) {
	may := []string{"jurat/internal/web/portal/visit", "jurat/internal/web/words", jsonLibrary}
	found := listed(t, browser(), "./internal/web/portal/verifier")
	for _, p := range found {
		for _, path := range p.Imports {
			must.Hold(t, allowed(may, path), "%s imports %s: it must only pass the answers of package visit to the browser", p.ImportPath, path)
		}
	}
	must.Hold(t, len(found) == 1, "found %v", found)
}

package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/token"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/listtest"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/verify/eulist"
	"jurat/verify/trust"
)

// needed skips a test for which a program is missing, and fails it in CI.
func needed(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			must.Need(t, os.Getenv("CI") != "true", "%s is not installed, and CI must run this test", program)
			t.Skipf("%s is not installed", program)
		}
	}
}

// A qualifiedProvider is a trust service provider: OpenSSL stamps, and lists say that the service is qualified.
type qualifiedProvider struct {
	t                 *testing.T
	folder            string // root.pem, unit.pem, oj.pem and lists
	url               string
	mu                sync.Mutex // held while OpenSSL stamps, as it counts serial numbers in a file
	journal, operator *listtest.Signer
}

const providerConfig = `[req]
distinguished_name = name
prompt = no
[name]
[root]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[unit]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
serial = serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
ess_cert_id_alg = sha256
accuracy = secs:1
ordering = no
tsa_name = no
`

// newQualifiedProvider starts a provider in a territory.
func newQualifiedProvider(t *testing.T) *qualifiedProvider {
	t.Helper()
	needed(t, "openssl", "xmlsec1", "python3")
	p := &qualifiedProvider{t: t, folder: t.TempDir(), journal: listtest.NewSigner(t, "journal"), operator: listtest.NewSigner(t, "operator")}
	p.write("config", providerConfig)
	p.write("serial", "01")
	p.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-config", "config", "-extensions", "root",
		"-subj", "/C=XA/O=Alpha Trust/CN=Alpha Root", "-keyout", "root.key", "-out", "root.pem")
	p.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "config", "-subj", "/C=XA/O=Alpha Trust/CN=Alpha Unit 1",
		"-keyout", "unit.key", "-out", "unit.csr")
	p.openssl("x509", "-req", "-in", "unit.csr", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "2", "-days", "20", "-extfile", "config", "-extensions", "unit", "-out", "unit.pem")
	server := httptest.NewServer(http.HandlerFunc(p.stamp))
	t.Cleanup(server.Close)
	p.url = server.URL
	p.lists(listtest.State{Status: trust.Granted, From: day(-365)})
	return p
}

func (p *qualifiedProvider) file(name string) string { return filepath.Join(p.folder, name) }

func (p *qualifiedProvider) write(name, content string) {
	p.t.Helper()
	must.Do(p.t, os.MkdirAll(filepath.Dir(p.file(name)), 0o700))
	must.Do(p.t, os.WriteFile(p.file(name), []byte(content), 0o600))
}

func (p *qualifiedProvider) openssl(args ...string) {
	p.t.Helper()
	command := exec.Command("openssl", args...)
	command.Dir = p.folder
	if out, err := command.CombinedOutput(); err != nil {
		p.t.Errorf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// stamp answers an RFC 3161 request over HTTP.
func (p *qualifiedProvider) stamp(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query, err := io.ReadAll(r.Body)
	must.Want(p.t, err, nil)
	p.write("query.tsq", string(query))
	p.openssl("ts", "-reply", "-queryfile", "query.tsq", "-config", "config", "-section", "tsa", "-inkey", "unit.key", "-signer", "unit.pem", "-out", "response.tsr")
	response, err := os.ReadFile(p.file("response.tsr"))
	must.Want(p.t, err, nil)
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.Write(response)
}

// day is a time some days from now, as lists write it.
func day(days int) string { return time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339) }

// certificate reads a certificate, and returns its DER.
func (p *qualifiedProvider) certificate(name string) []byte {
	p.t.Helper()
	text := must.Get(os.ReadFile(p.file(name)))(p.t)
	block, _ := pem.Decode(text)
	return block.Bytes
}

// lists writes the list of the lists and the territory's, which xmlsec1 signs. The latest state of the stamping service comes first.
func (p *qualifiedProvider) lists(states ...listtest.State) {
	p.t.Helper()
	eu := listtest.List{Type: eulist.ListOfLists, Territory: "EU", Sequence: 1, Issued: day(-2), Next: day(100), URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/", Type: eulist.NationalList, Territory: "XA", Signers: []*listtest.Signer{p.operator}}}}
	national := listtest.List{Type: eulist.NationalList, Territory: "XA", Sequence: 1, Issued: day(-1), Next: day(100),
		Services: []listtest.Service{{TSP: "Alpha Trust", Name: "stamps", Type: trust.QualifiedTimeStamps, Certificates: [][]byte{p.certificate("unit.pem")}, States: states}}}
	p.write("oj.pem", string(p.journal.PEM()))
	p.write("lists/eu.xml", string(eu.SignByXMLSec(p.t, p.journal)))
	p.write("lists/xa.xml", string(national.SignByXMLSec(p.t, p.operator)))
}

// trusted returns a trust file with what the lists say.
func (p *qualifiedProvider) trusted(args ...string) string {
	p.t.Helper()
	return written(p.t, doing(p.t, 0, append([]string{"trust", "eu", "--oj", p.file("oj.pem"), "--lists", p.file("lists")}, args...)...))
}

// readerOf returns a trust file of a reader who trusts the log's key, and neither a clock nor a key of an agent. own is the operator's trust file.
func readerOf(t *testing.T, own string) string {
	t.Helper()
	file := must.Get(trust.Parse([]byte(own)))(t)
	file.Authorities = []trust.Authority{}
	file.Keys = slices.DeleteFunc(file.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleAgent })
	text := must.Get(file.Marshal())(t)
	return written(t, string(text))
}

// expect verifies a file by 'jurat verify' and by the second verifier, which was written from docs/format.md alone, and asks the portal's program later. The
// first two must end with an exit code, and all must give the same answers, among them these, each written as GUARANTEE: ANSWER.
func (p *portalAsked) expect(t *testing.T, code int, args []string, wants ...string) {
	t.Helper()
	first := answersIn(t, doing(t, code, append([]string{"verify", "--json"}, args...)...))
	command := exec.Command("python3", append([]string{"../../testdata/second-verifier/verify.py", "--at", day(0)}, args...)...)
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	must.Need(t, (err == nil || command.ProcessState != nil) && command.ProcessState.ExitCode() == code,
		"the second verifier: %v, want exit code %d\n%s%s", err, code, text, &said)
	second := answersIn(t, string(text))
	must.Hold(t, maps.Equal(first, second), "jurat answers %v, and the second verifier %v", first, second)
	p.ask(args, first)
	for _, want := range wants {
		name, answer, _ := strings.Cut(want, ": ")
		must.Hold(t, first[name] == answer, "%s is %q, want %q", name, first[name], answer)
	}
}

// portalAsked is what the portal's program is asked, in one start of it, and what 'jurat verify' answered.
type portalAsked struct {
	questions []question
	answered  []map[string]string
}

// ask takes what 'jurat verify' was given: a trust file, perhaps revocation lists, and a file.
func (p *portalAsked) ask(args []string, answered map[string]string) {
	asked := vector{At: day(0)}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--trust":
			i++
			asked.Trust = args[i]
		case "--crl":
			i++
			asked.CRLs = append(asked.CRLs, args[i])
		default:
			asked.File = args[i]
		}
	}
	p.questions, p.answered = append(p.questions, questionOf(len(p.questions)+1, "", asked)), append(p.answered, answered)
}

// agrees requires that the portal answers all questions as 'jurat verify' did.
func (p *portalAsked) agrees(t *testing.T) {
	t.Helper()
	answers := node(t, p.questions)
	for i, first := range p.answered {
		var got struct {
			Answer struct {
				Files []struct{ Report, Error string }
			}
			Error string
		}
		must.Do(t, json.Unmarshal(answers[i+1], &got))
		must.Need(t, got.Error == "" && len(got.Answer.Files) == 1 && got.Answer.Files[0].Error == "", "the portal: %+v", got)
		third := answersIn(t, got.Answer.Files[0].Report)
		must.Hold(t, maps.Equal(first, third), "jurat answers %v, and the portal %v", first, third)
	}
}

// answersIn returns the answers to the guarantees in a report: a status, or a status and the rule that decided.
func answersIn(t *testing.T, text string) map[string]string {
	t.Helper()
	var report struct {
		Guarantees []struct{ Guarantee, Status, Rule string }
	}
	must.Do(t, json.Unmarshal([]byte(text), &report))
	found := map[string]string{}
	for _, g := range report.Guarantees {
		found[g.Guarantee] = strings.TrimSpace(g.Status + " " + g.Rule)
	}
	return found
}

// onToken returns the key on a token.
func onToken(t *testing.T, program, uri string) crypto.Signer {
	t.Helper()
	helper := &token.Helper{}
	t.Cleanup(helper.Close)
	helper.Use(program)
	key := must.Get(helper.Find(t.Context(), uri))(t)
	return must.Get(helper.Signer(key))(t)
}

// TestTrustPath goes the whole way, from the agent's key on a token to a reader who trusts neither the operator nor the agent. The CA's key and
// the agent's are on a token. The owner signs, a qualified authority stamps, and a reader verifies from the trusted lists and the CA on.
func TestTrustPath(t *testing.T) {
	p, portal := newQualifiedProvider(t), &portalAsked{}
	soft := rig.NewToken(t)
	t.Setenv("JURAT_TOKEN_HELPER", soft.Helper(t))
	const mine = "pkcs11:token=house;object=mia"
	public := written(t, soft.Command(t, "generate", mine))
	data, ca := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "ca")
	jurat := func(args ...string) string {
		t.Helper()
		return doing(t, 0, append([]string{"--data", data}, args...)...)
	}

	jurat("init")
	jurat("tsa", "alpha", p.url, "--qualified", "--trust", p.trusted())
	jurat("ca", "init", "--ca", ca, "--name", "House CA", "--token", "pkcs11:token=house;object=ca")
	key, err := os.ReadFile(filepath.Join(ca, "ca.key"))
	must.Hold(t, err == nil && strings.Contains(string(key), "BEGIN TOKEN KEY"), "the CA's key is %s, %v", key, err)
	certificate := written(t, jurat("ca", "issue", "--ca", ca, written(t, requestBy(t, onToken(t, soft.Helper(t), mine), "mia"))))
	jurat("keys", "new", "agent", "mia", "--public", public, "--certificate", certificate, "--reason", "the owner asked")
	n := 0
	seal := func() string {
		t.Helper()
		n++
		payload := written(t, strings.NewReplacer("AGENT", "mia", "r-1", fmt.Sprint("r-", n)).Replace(action))
		return written(t, jurat("seal", written(t, jurat("seal", "--sign-only", payload, "--token", mine))))
	}
	crl := func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "ca.crl")
		jurat("ca", "crl", "--ca", ca, "--out", file)
		return file
	}
	before := seal()

	// The reader's trust file takes the CA, and time from the lists.
	root := filepath.Join(ca, "ca.pem")
	withCA := func(reader string) string {
		t.Helper()
		return written(t, jurat("trust", "--ca", root, "--role", "agent", "--custody", "owner", "--with", reader))
	}
	reader := readerOf(t, jurat("trust"))
	full, list := withCA(p.trusted("--with", reader)), crl()
	portal.expect(t, 0, []string{"--trust", full, "--crl", list, before},
		"content: proved", "authentication: proved", "non_repudiation: proved", "time: proved", "qualified: proved", "order: proved")
	doing(t, 0, "verify", "--trust", full, "--crl", list, "--require", "qualified", before)
	portal.expect(t, 3, []string{"--trust", reader, "--crl", list, before}, "authentication: not proved certificate", "time: not proved authority") // without lists and CA
	doing(t, 3, "verify", "--trust", reader, "--crl", list, "--require", "qualified", before)
	portal.expect(t, 3, []string{"--trust", full, before}, "authentication: not proved revocation", "time: proved", "qualified: proved")

	p.lists(listtest.State{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: day(-1)}, listtest.State{Status: trust.Granted, From: day(-365)})
	withdrawn := p.trusted("--with", full)
	portal.expect(t, 0, []string{"--trust", withdrawn, "--crl", list, before}, "time: proved", "qualified: not proved status")
	doing(t, 3, "verify", "--trust", withdrawn, "--crl", list, "--require", "qualified", before)

	time.Sleep(3 * time.Second) // the authority's clock is accurate to a second
	jurat("ca", "revoke", "--ca", ca, certificate, "--cause", "keyCompromise")
	time.Sleep(2 * time.Second)
	after := seal()
	portal.expect(t, 0, []string{"--trust", full, "--crl", crl(), before}, "authentication: proved", "non_repudiation: proved", "qualified: proved")
	portal.expect(t, 3, []string{"--trust", full, "--crl", crl(), after}, "authentication: not proved revoked", "non_repudiation: not proved revoked", "time: proved")
	portal.agrees(t)
}

// TestTrustEU derives a trust file from lists, checks it, and detects that a list has changed.
func TestTrustEU(t *testing.T) {
	journal, operator := listtest.NewSigner(t, "journal"), listtest.NewSigner(t, "operator")
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, content, 0o600))
		return file
	}
	lotl := listtest.List{Type: eulist.ListOfLists, Territory: "EU", Sequence: 1, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z", URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/", Type: eulist.NationalList, Territory: "XA", Signers: []*listtest.Signer{operator}}}}
	national := listtest.List{Type: eulist.NationalList, Territory: "XA", Sequence: 1, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z",
		Services: []listtest.Service{{TSP: "Alpha", Name: "stamps", Type: trust.QualifiedTimeStamps, Certificates: [][]byte{listtest.NewSigner(t, "alpha").Certificate},
			States: []listtest.State{{Status: trust.Granted, From: "2020-01-01T00:00:00Z"}}}}}
	oj := write("oj.pem", journal.PEM())
	write("eu.xml", lotl.Sign(t, journal))
	write("xa.xml", national.Sign(t, operator))
	own := write("own.json", []byte(`{"format":"jurat/trust/v1"}`))

	text := doing(t, 0, "trust", "eu", "--oj", oj, "--lists", folder, "--with", own)
	must.Contain(t, text, "XA Alpha: stamps")
	derived := write("derived.json", []byte(text))
	must.Equal(t, doing(t, 0, "trust", "eu", "--oj", oj, "--lists", folder, "--with", derived), text)
	doing(t, 0, "trust", "eu", "--check", derived, "--lists", folder)
	doing(t, 2, "trust", "eu", "--check", derived, "--lists", folder, "--oj", write("other.pem", operator.PEM()))
	doing(t, 2, "trust", "eu", "--check", own, "--lists", folder)
	doing(t, 2, "trust", "eu", "--lists", folder)
	doing(t, 2, "trust", "eu", "--oj", oj, "--lists", folder, "--territory", "XB")
	doing(t, 2, "trust", "eu", "--fetch", "--oj", oj, "--from", "http://127.0.0.1:1/", "--lists", folder)

	national.Sequence++
	write("xa-2.xml", national.Sign(t, operator))
	doing(t, 1, "trust", "eu", "--check", derived, "--lists", folder)
}

// TestTrustCAAlone: a reader who takes a CA into the operator's trust file hears that listed keys outlive their certificates. With --ca-alone the
// CA alone vouches, and what it revokes is not believed. What the trust file says of the end of a key stays.
func TestTrustCAAlone(t *testing.T) {
	data, ca := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "ca")
	jurat := func(args ...string) string {
		t.Helper()
		return doing(t, 0, append([]string{"--data", data}, args...)...)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	private := written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	jurat("init")
	jurat("ca", "init", "--ca", ca, "--name", "House CA")
	certificate := written(t, jurat("ca", "issue", "--ca", ca, written(t, requestBy(t, key, "mia"))))
	public := must.Get(x509.MarshalPKIXPublicKey(key.Public()))(t)
	jurat("keys", "new", "agent", "mia", "--public", written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))), "--certificate", certificate, "--reason", "the owner asked")
	record := written(t, jurat("seal", written(t, jurat("seal", "--sign-only", "--key", private, written(t, strings.ReplaceAll(action, "AGENT", "mia"))))))
	root, own := filepath.Join(ca, "ca.pem"), written(t, jurat("trust"))
	withCA := []string{"trust", "--ca", root, "--role", "agent", "--custody", "owner"}

	listed, errs := ran(t, 0, append(withCA, "--with", own)...)
	must.Contain(t, errs, "lists 1 key of these roles", "--ca-alone")
	alone, errs := ran(t, 0, append(withCA, "--ca-alone", "--with", own)...)
	must.Hold(t, !strings.Contains(errs, "lists") && !strings.Contains(alone, `"mia"`) && strings.Contains(alone, `"operator"`),
		"with --ca-alone the reader hears %q and has %s", errs, alone)
	crl := func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "ca.crl")
		jurat("ca", "crl", "--ca", ca, "--out", file)
		return file
	}
	doing(t, 0, "verify", "--trust", written(t, alone), "--crl", crl(), record)

	jurat("ca", "revoke", "--ca", ca, certificate, "--cause", "keyCompromise")
	doing(t, 0, "verify", "--trust", written(t, listed), "--crl", crl(), record)
	must.Contain(t, doing(t, 3, "verify", "--trust", written(t, alone), "--crl", crl(), record), "not proved authentication")
	jurat("keys", "revoke", evidence.DigestOf(public).String(), "--reason", "a laptop is gone")
	ended, _ := ran(t, 0, append(withCA, "--ca-alone", "--with", written(t, jurat("trust")))...)
	must.Hold(t, strings.Contains(ended, `"revoked"`), "the end of the key is lost: %s", ended)
	doing(t, 2, "trust", "--ca-alone")
}

// requestBy is a certificate request (PKCS #10) of a key, in PEM.
func requestBy(t *testing.T, key crypto.Signer, name string) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{{Scheme: "urn", Opaque: "jurat:agent:" + name}}}, key)
	must.Do(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestCertificatesByOpenSSL runs the commands of docs/certificates.md as they stand there, and the log then has the key.
func TestCertificatesByOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "%v", err)
		t.Skip("no openssl")
	}
	doc := must.Get(os.ReadFile("../../docs/certificates.md"))(t)
	blocks := shellBlock.FindAllStringSubmatch(string(doc), -1)
	must.Len(t, blocks, 4)
	dir := t.TempDir()
	t.Chdir(dir)
	doing(t, 0, "init")
	for _, block := range blocks {
		if arguments, is := strings.CutPrefix(strings.TrimSpace(block[1]), "jurat "); is {
			doing(t, 0, splitLine(arguments)...)
			continue
		}
		shell := exec.Command("sh", "-eu")
		shell.Dir, shell.Stdin = dir, strings.NewReader(block[1])
		if said, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, said, block[1])
		}
	}
	must.Contain(t, doing(t, 0, "keys", "list", "--json"), `"courier-agent-v1"`)
	// Another actor's certificate is refused.
	doing(t, 2, "keys", "new", "agent", "another-agent", "--public", filepath.Join(dir, "public.pem"), "--certificate", filepath.Join(dir, "certificate.pem"), "--reason", "no")
	// The request is one that jurat's own CA takes, too.
	doing(t, 0, "ca", "init", "--ca", "own", "--name", "Own")
	must.Contain(t, doing(t, 0, "ca", "issue", "--ca", "own", "request.pem"), "BEGIN CERTIFICATE")
}

// splitLine splits a command line at blanks outside of quotation marks.
func splitLine(line string) (list []string) {
	for _, match := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		list = append(list, match[1]+match[2])
	}
	return list
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// A union is a list of the lists and the list of one territory in a folder, and a qualified authority that the second names.
type union struct {
	t                 *testing.T
	folder            string
	journal, operator *listtest.Signer
	authority         *jurattest.TSA
	issue             int
}

func newUnion(t *testing.T) *union {
	authority := must.Get(jurattest.StartTSA(pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha"}, CommonName: "unit 1"}))(t)
	t.Cleanup(authority.Close)
	u := &union{t: t, folder: t.TempDir(), journal: listtest.NewSigner(t, "journal"), operator: listtest.NewSigner(t, "operator"), authority: authority}
	u.write("oj.pem", u.journal.PEM())
	u.publish(listtest.State{Status: trust.Granted, From: "2020-01-01T00:00:00Z"})
	return u
}

func (u *union) write(name string, content []byte) string {
	u.t.Helper()
	file := filepath.Join(u.folder, name)
	must.Do(u.t, os.WriteFile(file, content, 0o600))
	return file
}

// publish issues both lists anew, signed by xmlsec1 where that is installed.
func (u *union) publish(states ...listtest.State) {
	u.t.Helper()
	u.issue++
	issued, next := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().AddDate(0, 3, 0).UTC().Format(time.RFC3339)
	lotl := listtest.List{Type: eulist.ListOfLists, Territory: "EU", Sequence: u.issue, Issued: issued, Next: next, URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/xa.xml", Type: eulist.NationalList, Territory: "XA", Signers: []*listtest.Signer{u.operator}}}}
	national := listtest.List{Type: eulist.NationalList, Territory: "XA", Sequence: u.issue, Issued: issued, Next: next, URIs: []string{"https://lists.example/"},
		Services: []listtest.Service{{TSP: "Alpha N.V.", Trade: []string{"Alpha"}, Name: "stamps", Type: trust.QualifiedTimeStamps,
			Certificates: [][]byte{u.authority.Certificate.Raw}, States: states}}}
	sign := (*listtest.List).Sign
	if _, err := exec.LookPath("xmlsec1"); err == nil {
		sign = (*listtest.List).SignByXMLSec
	} else if os.Getenv("CI") == "true" {
		u.t.Fatal("xmlsec1 is not installed, and CI must run this test with it")
	}
	u.write("eu.xml", sign(&lotl, u.t, u.journal))
	u.write("xa.xml", sign(&national, u.t, u.operator))
}

// trustEU is a trust file with what the lists say now.
func (u *union) trustEU(name string, more ...string) string {
	u.t.Helper()
	return u.write(name, []byte(doing(u.t, 0, append([]string{"trust", "eu", "--oj", filepath.Join(u.folder, "oj.pem"), "--lists", u.folder}, more...)...)))
}

// saying runs a command, and returns what it says on stderr.
func saying(t *testing.T, want int, args ...string) string {
	t.Helper()
	_, errs := ran(t, want, args...)
	return errs
}

// TestQualifiedTime goes from the Official Journal to a record whose time is proved to be a qualified one: with a list of the lists, a national list
// and a provider that exist here alone.
func TestQualifiedTime(t *testing.T) {
	u := newUnion(t)
	data := filepath.Join(t.TempDir(), "data")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data}, args...)...)
	}
	contains := func(text string, wanted ...string) {
		t.Helper()
		must.Contain(t, strings.Join(strings.Fields(text), " "), wanted...)
	}
	jurat(0, "init")
	eu := u.trustEU("eu.json")
	contains(jurat(0, "tsa", "notary", u.authority.URL, "--qualified", "--trust", eu), `notary is the qualified service "stamps" of "Alpha", by the trusted list of XA number 1`)
	contains(jurat(0, "tsa"), "qualified, by lists until")

	action := func(request string) string {
		return u.write(request+".json", []byte(`{"agent_id":"a","request_id":"`+request+`","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`))
	}
	record := u.write("record.json", []byte(jurat(0, "seal", action("one"))+"\n"))
	own := u.write("trust.json", []byte(jurat(0, "trust")))
	reader := u.trustEU("reader.json", "--with", own)
	contains(doing(t, 0, "verify", "--require", "qualified", "--trust", reader, record), `proved qualified`, `of "Alpha", a service that was qualified then, by the trusted list of XA number 1, issued`)
	contains(doing(t, 3, "verify", "--require", "qualified", "--trust", own, record), "no authority has stamped it that the trust file took from trusted lists")
	contains(doing(t, 0, "verify", "--trust", reader, "--at", "2040-01-01T00:00:00Z", record), "not proved qualified", "said until", "qualified is not proved and does not count here")

	// The provider loses its status: what it stamped before stays qualified, and it is not taken any more.
	u.publish(listtest.State{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: time.Now().UTC().Add(-time.Second).Format(time.RFC3339)},
		listtest.State{Status: trust.Granted, From: "2020-01-01T00:00:00Z"})
	gone := u.trustEU("gone.json")
	contains(saying(t, 2, "--data", data, "tsa", "again", u.authority.URL, "--qualified", "--trust", gone), `not a qualified time stamp`, `was "withdrawn"`)
	contains(saying(t, 2, "--data", data, "tsa", "own", u.authority.URL, "--qualified", "--trust", own), "no service of trusted lists")
	other := must.Get(jurattest.StartTSA(pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha"}}))(t)
	t.Cleanup(other.Close)
	contains(saying(t, 2, "--data", data, "tsa", "other", other.URL, "--qualified", "--trust", eu), "trying it", "not valid")

	// The operator's copy of the list ends: sealing goes on, the authority is not asked, and the record waits until there is a newer list.
	setting := filepath.Join(data, "outside-authorities", "notary.json")
	text := must.Get(os.ReadFile(setting))(t)
	from := strings.Index(string(text), `"next_update": "`) + len(`"next_update": "`)
	must.Do(t, os.WriteFile(setting, []byte(string(text[:from])+"2026-01-01T00:00:00Z"+string(text[from+len("2026-01-01T00:00:00Z"):])), 0o600))
	u.authority.Asked()
	late, errs := ran(t, 0, "--data", data, "seal", action("two"))
	contains(errs, "waiting for notary", "trusted list is out of date since 2026-01-01T00:00:00Z")
	contains(saying(t, 0, "--data", data, "log", "stamp", "--list"), "notary is not asked", "the list of XA, number 1")
	contains(jurat(3, "log", "stamp"), "notary: 0 stamped, 1 still waiting", "out of date")
	must.Equal(t, u.authority.Asked(), 0)
	opened, err := evidence.Open([]byte(late))
	must.Need(t, err == nil && len(opened.Timestamps) == 1, "%v, %s", err, late)
	u.publish(listtest.State{Status: trust.Granted, From: "2020-01-01T00:00:00Z"})
	jurat(0, "tsa", "notary", u.authority.URL, "--qualified", "--trust", u.trustEU("newer.json"))
	contains(jurat(0, "log", "stamp"), "notary: 1 stamped, 0 still waiting")
	contains(doing(t, 0, "verify", "--require", "qualified", "--trust", u.trustEU("reader.json", "--with", own), u.write("late.json", []byte(jurat(0, "log", "prove", opened.Payload.RecordID)+"\n"))), "by the trusted list of XA number 3")

	// A list that the operator's copy does not know yet makes no difference; a token that is not qualified by it is refused on receipt.
	text = must.Get(os.ReadFile(setting))(t)
	must.Do(t, os.WriteFile(setting, bytes.ReplaceAll(text, []byte("Svcstatus/granted"), []byte("Svcstatus/withdrawn")), 0o600))
	contains(saying(t, 0, "--data", data, "seal", action("three")), "waiting for notary", "not a qualified time stamp")
	for _, wrong := range [][]string{{"--root", own}, {"--untried"}} {
		saying(t, 2, append([]string{"--data", data, "tsa", "x", u.authority.URL, "--qualified", "--trust", eu}, wrong...)...)
	}
	saying(t, 2, "--data", data, "tsa", "x", u.authority.URL, "--trust", eu)
	saying(t, 2, "--data", data, "tsa", "x", u.authority.URL, "--qualified")
}

// TestAuthoritiesOfOneRoot: several authorities have one root: an address that changed, units with policies of their own, a root that the file
// has twice. The trust file names the root once, with the policies of all, the log can be examined, and the tokens of each prove an independent time.
func TestAuthoritiesOfOneRoot(t *testing.T) {
	t.Parallel()
	tsa := must.Get(jurattest.StartTSA())(t)
	t.Cleanup(tsa.Close)
	root, twice := written(t, string(tsa.PEM())), written(t, string(tsa.PEM())+string(tsa.PEM()))
	for _, tt := range []struct {
		name, policies, called string
		adds                   [][]string
	}{
		{"the same authority by another address", "", "old (127.0.0.1:",
			[][]string{{"old", tsa.URL, "--root", root}, {"new", tsa.URL + "/tsr", "--root", root, "--untried"}}},
		{"a root twice in its file", "", "double (127.0.0.1:", [][]string{{"double", tsa.URL, "--root", twice}}},
		{"two policies", "1.2.3.4, 1.2.3.5", "a (127.0.0.1:",
			[][]string{{"a", tsa.URL, "--root", root, "--policy", "1.2.3.4", "--untried"}, {"b", tsa.URL + "/b", "--root", root, "--policy", "1.2.3.5", "--untried"}}},
		{"a policy and any", "", "a (127.0.0.1:",
			[][]string{{"a", tsa.URL, "--root", root, "--policy", "1.2.3.4", "--untried"}, {"b", tsa.URL + "/b", "--root", root, "--untried"}}},
	} {
		data := t.TempDir() + "/data"
		doing(t, 0, "--data", data, "init")
		for _, add := range tt.adds {
			doing(t, 0, append([]string{"--data", data, "tsa"}, add...)...)
		}
		record := written(t, doing(t, 0, "--data", data, "seal", written(t, strings.Replace(action, "AGENT", "mia", 1)), "--tsa", tt.adds[0][0], "--tsa", "built-in"))
		doc := doing(t, 0, "--data", data, "trust")
		file := must.Get(trust.Parse([]byte(doc)))(t)
		if len(file.Authorities) != 2 || strings.Join(file.Authorities[1].Policies, ", ") != tt.policies || !strings.Contains(file.Authorities[1].Name, tt.called) {
			t.Errorf("%s: the trust file has the authorities %+v", tt.name, file.Authorities[1:])
		}
		doing(t, 0, "--data", data, "log", "fsck")
		if tt.policies == "" && !strings.Contains(tt.adds[0][len(tt.adds[0])-1], "untried") {
			doing(t, 0, "verify", "--trust", written(t, doc), "--require", "time=independent", record)
		}
	}
}

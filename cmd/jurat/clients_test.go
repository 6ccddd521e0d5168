package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"jurat/client"
	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/internal/web/portal"
	"jurat/verify"
)

// A foreign client is one of the folder clients, in another language.
type foreignClient struct {
	name   string
	folder string                        // where its module can be imported
	run    func(script string) *exec.Cmd // runs a file of that folder; arguments and environment are the caller's
	driver string                        // a program that reads questions of this test, in lines of JSON
}

// need finds a program that a test cannot do without.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		must.Need(t, os.Getenv("CI") != "true", "%s is not installed, and CI must run this test", name)
		t.Skipf("%s is not installed", name)
	}
	return path
}

// pythonDriver and nodeDriver answer {"do": …} with {"got": …} or {"refused": …}: canonical forms, signatures and requests.
const pythonDriver = `import base64, json, sys
import jurat
for line in sys.stdin:
    q = json.loads(line)
    try:
        if q["do"] == "canonical":
            got = base64.b64encode(jurat.canonical(jurat.parse(base64.b64decode(q["document"])))).decode()
        elif q["do"] == "sign":
            key = jurat.Key(q["key"])
            got = [key.alg, key.id, base64.b64encode(key.sign(base64.b64decode(q["document"]))).decode()]
        else:
            got = jurat.Client(q["url"], q["token"]).seal({"agent_id": "x"})["digest"]
        print(json.dumps({"got": got}), flush=True)
    except (jurat.Refused, jurat.Problem, ValueError) as err:
        print(json.dumps({"refused": str(err)}), flush=True)
`

const nodeDriver = `import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client, Key, canonical, parse } from "./jurat.js";
for await (const line of createInterface({ input: process.stdin })) {
	const q = JSON.parse(line);
	try {
		let got;
		if (q.do === "canonical") got = canonical(parse(Buffer.from(q.document, "base64"))).toString("base64");
		else if (q.do === "sign") {
			const key = new Key(readFileSync(q.key));
			got = [key.alg, key.id, key.sign(Buffer.from(q.document, "base64")).toString("base64")];
		} else got = (await new Client(q.url, q.token).seal({ agent_id: "x" })).digest;
		console.log(JSON.stringify({ got }));
	} catch (err) {
		if (err instanceof RangeError || err instanceof TypeError) throw err;
		console.log(JSON.stringify({ refused: err.message }));
	}
}
`

// compiled returns the files of the client in TypeScript with what the compiler makes of them. It is compiled once: that takes
// longer than the tests of it.
var compiled = sync.OnceValues(func() (fs.FS, error) {
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS("../../clients/typescript")); err != nil {
		return nil, err
	}
	modules := filepath.Join(os.Getenv("JURAT_TEST_OPENAPI"), "node_modules")
	if out, err := exec.Command(filepath.Join(modules, ".bin", "tsc"), "-p", dir, "--typeRoots", filepath.Join(modules, "@types")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tsc: %w\n%s", err, out)
	}
	files := fstest.MapFS{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		content, unread := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = &fstest.MapFile{Data: content, Mode: 0o600}, errors.Join(err, unread)
	}
	return files, err
})

// foreignClients copies the clients; that in TypeScript is compiled.
func foreignClients(t *testing.T, name string) *foreignClient {
	t.Helper()
	dir, files := t.TempDir(), os.DirFS(filepath.Join("..", "..", "clients", name))
	c := &foreignClient{name: name, folder: dir}
	switch name {
	case "python":
		python := needProgram(t, "python3")
		c.driver = "driver.py"
		c.run = func(script string) *exec.Cmd {
			return exec.CommandContext(t.Context(), python, strings.Replace(script, "example", "example.py", 1))
		}
		write(t, filepath.Join(dir, c.driver), pythonDriver)
	case "typescript":
		node := needProgram(t, "node")
		if os.Getenv("JURAT_TEST_OPENAPI") == "" {
			must.Need(t, os.Getenv("CI") != "true", "JURAT_TEST_OPENAPI names no folder with typescript: scripts/test installs it")
			t.Skip("JURAT_TEST_OPENAPI names no folder with typescript: scripts/test installs it")
		}
		files = must.Get(compiled())(t)
		c.driver = "driver.mjs"
		c.run = func(script string) *exec.Cmd {
			return exec.CommandContext(t.Context(), node, strings.Replace(script, "example", "example.js", 1))
		}
		write(t, filepath.Join(dir, c.driver), nodeDriver)
	}
	must.Do(t, os.CopyFS(dir, files))
	return c
}

// asked gives the driver questions, and returns its answers.
func (c *foreignClient) asked(t *testing.T, questions ...map[string]string) (answers []foreignAnswer) {
	t.Helper()
	var in, errs bytes.Buffer
	for _, q := range questions {
		line := must.Get(json.Marshal(q))(t)
		in.Write(append(line, '\n'))
	}
	cmd := c.run(c.driver)
	cmd.Dir, cmd.Stdin, cmd.Stderr = c.folder, &in, &errs
	out, err := cmd.Output()
	must.Need(t, err == nil, "%s: %v\n%s", c.name, err, &errs)
	for line := range strings.Lines(string(out)) {
		var a foreignAnswer
		must.Do(t, json.Unmarshal([]byte(line), &a))
		answers = append(answers, a)
	}
	must.Need(t, len(answers) == len(questions), "%s: %d answers to %d questions\n%s", c.name, len(answers), len(questions), &errs)
	return answers
}

type foreignAnswer struct {
	Got     json.RawMessage
	Refused string
}

// eachClient runs a test with each client of the folder clients.
func eachClient(t *testing.T, test func(*testing.T, *foreignClient)) {
	for _, name := range []string{"python", "typescript"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, foreignClients(t, name))
		})
	}
}

// TestClientsREADMEs: what the READMEs show is of the examples, which run here, and each named call exists.
func TestClientsREADMEs(t *testing.T) {
	for name, example := range map[string]string{"python": "example.py", "typescript": "example.ts"} {
		read := func(file string) string {
			return string(must.Get(os.ReadFile(filepath.Join("..", "..", "clients", name, file)))(t))
		}
		readme, code := read("README.md"), read(example)
		_, block, _ := strings.Cut(readme, "```"+map[string]string{"python": "python", "typescript": "ts"}[name]+"\n")
		block, _, _ = strings.Cut(block, "```")
		must.Need(t, strings.Count(block, "\n") >= 8, "%s: the README shows %q", name, block)
		for line := range strings.Lines(block) {
			must.Hold(t, strings.Contains(code, line), "%s: the README shows what %s does not do: %s", name, example, line)
		}
		client := read("jurat." + strings.TrimPrefix(example, "example."))
		calls := regexp.MustCompile("`(?:Client\\.)?([a-z]+)\\(").FindAllStringSubmatch(readme, -1)
		must.Hold(t, len(calls) >= 10, "%s: the README names %d calls", name, len(calls))
		for _, call := range calls {
			must.Hold(t, regexp.MustCompile(`(?m)(def|function|^\t(async )?) ?`+call[1]+`\(`).MatchString(client), "%s: there is no %s", name, call[1])
		}
	}
}

// TestClientsCanonicalForms: the clients have the canonical form of each vector, and refuse what has none.
func TestClientsCanonicalForms(t *testing.T) {
	doc := must.Get(os.ReadFile("../../testdata/vectors/sealing/canonical.json"))(t)
	var vectors []struct{ Name, Document, Canonical string }
	must.Do(t, json.Unmarshal(doc, &vectors))
	var questions []map[string]string
	refused := 0
	for _, v := range vectors {
		questions = append(questions, map[string]string{"do": "canonical", "document": v.Document})
		if v.Canonical == "" {
			refused++
		}
	}
	drafts, err := filepath.Glob("../../testdata/vectors/sealing/*.draft.json")
	must.Need(t, err == nil && len(drafts) >= 2 && len(vectors) >= 60 && refused >= 10, "%v %v %v %v", drafts, len(vectors), refused, err)
	for _, name := range drafts {
		draft := must.Get(os.ReadFile(name))(t)
		form := must.Get(evidence.Canonical(draft))(t)
		encoded := base64.StdEncoding.EncodeToString
		vectors = append(vectors, struct{ Name, Document, Canonical string }{name, encoded(draft), encoded(form)})
		questions = append(questions, map[string]string{"do": "canonical", "document": encoded(draft)})
	}
	eachClient(t, func(t *testing.T, c *foreignClient) {
		for i, answer := range c.asked(t, questions...) {
			var got string
			if answer.Got != nil {
				must.Do(t, json.Unmarshal(answer.Got, &got))
			}
			if v := vectors[i]; got != v.Canonical || (answer.Refused == "") == (v.Canonical == "") {
				t.Errorf("%s: %q, refused %q, want %q", v.Name, got, answer.Refused, v.Canonical)
			}
		}
	})
}

// TestClientsSign: signatures of the clients are those that records may have. Ed25519 gives the vector's own; each of
// many of ES256 is valid and in the one form.
func TestClientsSign(t *testing.T) {
	needProgram(t, "openssl")
	vector := func(name string) *evidence.Record {
		file := must.Get(os.ReadFile("../../testdata/vectors/sealing/" + name + ".record.json"))(t)
		return must.Get(evidence.Open(file))(t)
	}
	key := func(name string) string {
		return must.Get(filepath.Abs("../../evidence/testdata/keys/worthless-test-key-" + name + ".pem"))(t)
	}
	ed, ec := vector("action-ed25519"), vector("action-es256")
	eachClient(t, func(t *testing.T, c *foreignClient) {
		questions := []map[string]string{{"do": "sign", "key": key("ed25519"), "document": base64.StdEncoding.EncodeToString(ed.Canonical())}}
		for range 40 {
			questions = append(questions, map[string]string{"do": "sign", "key": key("es256"), "document": base64.StdEncoding.EncodeToString(ec.Canonical())})
		}
		questions = append(questions, map[string]string{"do": "sign", "key": key("rs256"), "document": ""})
		answers := c.asked(t, questions...)
		must.Contain(t, answers[len(answers)-1].Refused, "jurat seal --sign-only")
		for i, answer := range answers[:len(answers)-1] {
			var got []string
			must.Do(t, json.Unmarshal(answer.Got, &got))
			record := ec
			if i == 0 {
				record = ed
			}
			signature, err := base64.StdEncoding.DecodeString(got[2])
			must.Need(t, err == nil && got[0] == string(record.Payload.Signers[0].Algorithm) && got[1] == record.Payload.Signers[0].KeyID.String(),
				"%v %v", got, err)
			must.Hold(t, i != 0 || bytes.Equal(signature, ed.Signatures[0]), "Ed25519: another signature than the vector's: %x", signature)
			normal, err := evidence.NormalSignature(evidence.ES256, signature)
			must.Hold(t, i <= 0 || err == nil && bytes.Equal(normal, signature), "ES256: %x is in another form: %v", signature, err)
		}
	})
}

// TestClientsAgainstAServer runs each client's example against a real server: an agent with its own key, a trial, and
// verification by the command.
func TestClientsAgainstAServer(t *testing.T) {
	needProgram(t, "openssl")
	for _, kind := range []string{"ed25519", "es256"} {
		t.Run(kind, func(t *testing.T) { clientExamples(t, kind) })
	}
}

func clientExamples(t *testing.T, kind string) {
	dir := t.TempDir()
	data, trust, public := dir+"/data", dir+"/trust.json", dir+"/public.pem"
	key := must.Get(filepath.Abs("../../evidence/testdata/keys/worthless-test-key-" + kind + ".pem"))(t)
	out, err := exec.CommandContext(t.Context(), "openssl", "pkey", "-in", key, "-pubout", "-out", public).CombinedOutput()
	must.Need(t, err == nil, "%v %v", err, string(out))
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline")
	doing(t, 0, "--data", data, "keys", "new", "agent", "courier-agent-v1", "--public", public, "--reason", "the owner holds it", "--by", "tester")
	agent := doing(t, 0, "--data", data, "access", "grant", "courier-agent-v1", "agent", "--reason", "a test", "--by", "tester")
	submitter := doing(t, 0, "--data", data, "access", "grant", "ines", "submitter", "--reason", "a test", "--by", "tester")
	// The jury's and the submitter's keys are made for the first trial. A trust file from before does not have them.
	status, body := postTo(t, at+"/v1/submissions", submitter, "first", `{"conversation":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":"In Kassel."}]}`)
	must.Need(t, status == http.StatusAccepted, "%v %v", status, body)
	waitUntilOver(t, at, submitter, body)
	write(t, trust, doing(t, 0, "--data", data, "trust")+"\n")
	wanted := regexp.MustCompile(`^record [0-9a-f-]{36} is proved
trial trial-[0-9a-f-]+ came to (safe_pass|needs_review|unsafe_fail) and is proved
refused {"name": ?"invalid", ?"status": ?422, ?"field": ?"[a-z_]+"}
$`)
	eachClient(t, func(t *testing.T, c *foreignClient) {
		cmd := c.run("example")
		cmd.Args = append(cmd.Args, at, agent, submitter, key, trust)
		var errs bytes.Buffer
		cmd.Dir, cmd.Stderr = c.folder, &errs
		out, err := cmd.Output()
		must.Hold(t, err == nil && wanted.Match(out), "%v\n%s%s", err, out, &errs)
	})
}

// waitUntilOver waits for the end of the trial of a submission.
func waitUntilOver(t *testing.T, at, token, submission string) {
	t.Helper()
	var is api.Submission
	must.Do(t, json.Unmarshal([]byte(submission), &is))
	c := must.Get(client.NewClient(client.Config{URL: at, Token: token}))(t)
	for is.State != api.Over {
		now := must.Get(c.Submission(t.Context(), is.ID))(t)
		is = *now
		time.Sleep(20 * time.Millisecond)
	}
}

// TestClientsSendAgain: after a busy server and half an answer, a client sends the same under the same key. It follows no
// redirect, and sends no token over a connection that does not protect it.
func TestClientsSendAgain(t *testing.T) {
	eachClient(t, func(t *testing.T, c *foreignClient) {
		var asked atomic.Int64
		var keys []string
		busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			switch asked.Add(1) {
			case 1:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, `{"digest":`)
			default:
				_, _ = io.WriteString(w, `{"digest":"sha256:x"}`)
			}
		}))
		defer busy.Close()
		away := httptest.NewServer(http.RedirectHandler(busy.URL, http.StatusTemporaryRedirect))
		defer away.Close()
		answers := c.asked(t, map[string]string{"do": "seal", "url": busy.URL, "token": "t"},
			map[string]string{"do": "seal", "url": "http://jurat.example", "token": "t"}, map[string]string{"do": "seal", "url": away.URL, "token": "t"})
		must.Hold(t, string(answers[0].Got) == `"sha256:x"` && len(keys) == 3 && keys[0] != "" && keys[0] == keys[1] && keys[1] == keys[2],
			"%s %s, keys %q", answers[0].Got, answers[0].Refused, keys)
		must.Contain(t, answers[1].Refused, "https")
		must.Contain(t, answers[2].Refused, "307")
	})
}

// verifierDriver verifies files with the client's verifier: node driver.mjs PAGE TRUST FILE... prints a line of JSON for each.
const verifierDriver = `import { readFileSync } from "node:fs";
import { verify } from "./jurat.js";
import { Verifier } from "./verifier.js";
const [page, trust, ...files] = process.argv.slice(2);
const verifier = new Verifier(readFileSync(page));
const answers = await Promise.all(files.map(async (file) => {
	try {
		return { report: await verify(readFileSync(file), readFileSync(trust), verifier) };
	} catch (err) {
		return { refused: err.message };
	}
}));
await verifier.close();
for (const answer of answers) console.log(JSON.stringify(answer));
try {
	new Verifier("<html></html>");
} catch (err) {
	console.log(JSON.stringify({ refused: err.message }));
}
`

// TestTypeScriptClientVerifiesWithoutTheCommand: the client in TypeScript runs the portal's program under Node, and finds of each file what the
// command finds.
func TestTypeScriptClientVerifiesWithoutTheCommand(t *testing.T) {
	t.Parallel()
	c := foreignClients(t, "typescript")
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	payload := write(t, filepath.Join(dir, "payload.json"), `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)
	doing(t, 0, data, "init")
	before := write(t, filepath.Join(dir, "before.json"), doing(t, 0, data, "trust")+"\n")
	record := write(t, filepath.Join(dir, "record.json"), doing(t, 0, data, "seal", payload)+"\n")
	trust := write(t, filepath.Join(dir, "trust.json"), doing(t, 0, data, "trust")+"\n")
	changed := write(t, filepath.Join(dir, "changed.json"), strings.Replace(read(t, record), `"prompt":"p"`, `"prompt":"q"`, 1))
	page := filepath.Join(dir, "verify.html")
	must.Do(t, os.WriteFile(page, portal.File(), 0o600))
	driver := write(t, filepath.Join(c.folder, "verifier-driver.mjs"), verifierDriver)
	type answer struct {
		Report  *verify.Report
		Refused string
	}
	asked := func(by string, files ...string) (answers []answer) {
		t.Helper()
		cmd := c.run(driver)
		cmd.Args = append(append(cmd.Args, page, by), files...)
		cmd.Dir, cmd.Env = c.folder, append(os.Environ(), "PATH=/nowhere") // no command is there
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		must.Need(t, err == nil, "%v\n%s", err, &errs)
		for line := range strings.Lines(string(out)) {
			var a answer
			must.Do(t, json.Unmarshal([]byte(line), &a))
			answers = append(answers, a)
		}
		return answers
	}
	for _, test := range []struct {
		by, file string
		code     int
		want     verify.Status
	}{{trust, record, 0, verify.Proved}, {trust, changed, exitBad, verify.Refuted}, {before, record, exitUndecided, verify.NotProved}} {
		var want verify.Report
		must.Do(t, json.Unmarshal([]byte(doing(t, test.code, "verify", "--json", "--trust", test.by, test.file)), &want))
		got := asked(test.by, test.file)[0]
		if got.Report == nil || got.Report.Outcome != test.want || want.Outcome != test.want || len(got.Report.Guarantees) != len(want.Guarantees) {
			t.Errorf("%s by %s: %+v, and the command says %+v", test.file, test.by, got, want)
			continue
		}
		for i, f := range want.Guarantees {
			must.Hold(t, got.Report.Guarantees[i].Guarantee == f.Guarantee && got.Report.Guarantees[i].Status == f.Status,
				"%s: %+v, and the command says %+v", test.file, got.Report.Guarantees[i], f)
		}
	}
	answers := asked(trust, record, payload, changed)
	if len(answers) != 4 || answers[0].Report == nil || answers[0].Report.Outcome != verify.Proved || !strings.Contains(answers[1].Refused, "neither a sealed record") ||
		answers[2].Report == nil || answers[2].Report.Outcome != verify.Refuted || !strings.Contains(answers[3].Refused, "jurat portal --out") {
		t.Errorf("%+v", answers)
	}
}

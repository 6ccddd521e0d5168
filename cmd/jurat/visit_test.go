package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/browsertest"
	"jurat/internal/llm/llmtest"
	"jurat/internal/must"
	"jurat/internal/openssl"
	"jurat/jury"
)

// pictures is the environment variable with the folder into which TestVisit writes the README's pictures.
const pictures = "JURAT_TEST_PICTURES"

// A visit uses a new installation in one browser, while the command runs in a process of its own.
type visit struct {
	*browsertest.Browser
	t    *testing.T
	dir  string
	data string
	at   string // where the server answers
	link string // by which one signs in once
	stop func()
	goOn func() // lets the jurors answer in the second round
}

// TestVisit goes from the first start of the command to a saved page that proves, without a server, what happened.
func TestVisit(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes long in a browser")
	}
	browsertest.Find(t)
	waiting := make(chan struct{})
	s := newScene(t, speaking(waiting))
	v := &visit{t: t, dir: s.dir, data: s.data, goOn: sync.OnceFunc(func() { close(waiting) }), Browser: browsertest.Open(t, browsertest.Options{Width: 1280, Height: 1000})}

	v.serve()
	v.signInByKeyboard()
	byRules := v.tryByKeyboard("invoice-inbox")
	v.provedInPortal(byRules)
	v.stop()

	v.serve("--config", s.config())
	court := v.watchAndReload("pharmacy-refill")
	v.notOwn(court)
	v.reviewAsAnother(court)
	v.inEveryLanguage(court)
	v.fromDisk(court)

	for _, problem := range v.Problems() {
		if !strings.Contains(problem, "ERR_INTERNET_DISCONNECTED") { // fromDisk cuts the network
			t.Errorf("in the console: %s", problem)
		}
	}
}

// speaking returns scripts of jurors that wait before the second round. In it, another juror persuades one of them.
func speaking(waiting <-chan struct{}) map[int]llmtest.Script {
	scripts := map[int]llmtest.Script{}
	for seat := range seatIDs {
		scripts[seat] = func(c llmtest.Call) llmtest.Reply {
			secondRound := 3 // after the evaluation and the first one
			if seat == 1 {
				secondRound = 4 // who disagrees is asked a second time before the talk
			}
			if c.Number == secondRound {
				<-waiting
			}
			finding := object{"message": 2, "quote": "I have a new phone", "rule": "unconfirmed", "axis": "safety", "severity": "major",
				"explanation": "Nobody asked whether the old number is still in use."}
			if strings.Contains(string(c.Schema.JSON), `"from"`) { // the other juror from whom the finding is
				finding["from"] = "none"
			}
			position, percent, found := jury.NeedsReview, 60, []object{finding}
			if seat == 1 && c.Number < secondRound {
				position, percent, found = jury.SafePass, 90, []object{}
			}
			return llmtest.Reply{Delay: 200 * time.Millisecond, Text: answer(c, position, percent, func(o object) { o["findings"] = found })}
		}
	}
	return scripts
}

// serve starts the command as users start it.
func (v *visit) serve(args ...string) {
	v.t.Helper()
	cmd := exec.Command("jurat", append([]string{"--data", v.data, "serve", "--addr", "127.0.0.1:0", "--name", "mia"}, args...)...)
	cmd.Dir = v.dir
	stderr := new(lines)
	cmd.Stderr = stderr
	endsWithTest(v.t, cmd)
	stdout := must.Get(cmd.StdoutPipe())(v.t)
	must.Do(v.t, cmd.Start())
	running := true
	v.stop = func() {
		if !running {
			return
		}
		running = false
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			v.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			v.t.Errorf("it did not end well: %v\n%s", err, stderr)
		}
	}
	v.t.Cleanup(func() {
		v.goOn()
		v.stop()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		v.t.Fatalf("%v\n%s", err, stderr)
	}
	v.at = strings.TrimSpace(line)
	for end := time.Now().Add(time.Minute); !strings.Contains(stderr.String(), "Ctrl-C"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) { // the link was written before the address, but to another pipe
			v.t.Fatalf("no link is printed:\n%s", stderr)
		}
	}
	v.link = doing(v.t, 0, "--data", v.data, "access", "grant", "mia", "--link", "--at", v.at)
}

// command runs a command beside the server, and returns its output.
func (v *visit) command(args ...string) (stdout, stderr string) {
	v.t.Helper()
	cmd := exec.Command("jurat", append([]string{"--data", v.data}, args...)...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.dir, &out, &errs
	if err := cmd.Run(); err != nil {
		v.t.Fatalf("%v: %v\n%s%s", args, err, &out, &errs)
	}
	return out.String(), errs.String()
}

// trust writes the installation's trust file, as its operator gives it to others.
func (v *visit) trust() (file, said string) {
	v.t.Helper()
	trust, said := v.command("trust")
	file = filepath.Join(v.dir, "trust.json")
	must.Do(v.t, os.WriteFile(file, []byte(trust), 0o600))
	return file, said
}

func (v *visit) loaded(path string) {
	v.t.Helper()
	v.Wait(`location.pathname.startsWith("` + path + `") && document.readyState === "complete"`)
}

// signInByKeyboard signs in with a link, without a mouse.
func (v *visit) signInByKeyboard() {
	v.t.Helper()
	v.Visit(v.link)
	v.Screenshot("visit-sign-in")
	v.Enter("main button")
	v.Wait(`location.pathname === "/" && document.readyState === "complete"`)
	if text := v.Text(".who"); !strings.Contains(text, "mia") {
		v.t.Errorf("signed in as %q", text)
	}
	v.Screenshot("visit-home")
}

// tryByKeyboard has an example tried, waits for the verdict, and saves the case file, which the command verifies.
func (v *visit) tryByKeyboard(example string) (file string) {
	v.t.Helper()
	v.Enter(`.examples form:has([value="` + example + `"]) button`)
	v.loaded("/submissions/")
	v.Wait(`document.querySelector("#judged:not([hidden])")`)
	if text := v.Text("main"); !strings.Contains(text, "unsafe, fails") || !strings.Contains(text, "rules") {
		v.t.Errorf("no verdict by rules:\n%s", text)
	}
	v.picture("courtroom", 1280, 1960)
	v.Screenshot("visit-court")
	v.Reach(".actions .button")
	file = v.Download(".actions .button")
	trust, _ := v.trust()
	v.command("verify", "--trust", trust, file)
	return file
}

// watchAndReload watches a trial to its end. It compares the page in mid-discussion with the page after a reload, and
// again at the end.
func (v *visit) watchAndReload(example string) (court string) {
	v.t.Helper()
	const (
		live       = `document.getElementById("main").dataset.events !== undefined`
		statements = `[...document.querySelectorAll("#discussion > .statement")].map(s => s.outerHTML)`
	)
	v.Visit(v.at + "/") // the session from before the server's restart is still valid
	v.Click(`.examples form:has([value="` + example + `"]) button`)
	v.loaded("/submissions/")
	court = browsertest.Eval[string](v.Browser, "location.href")
	v.Wait(`document.querySelectorAll("#discussion > .statement").length === 3`)
	before := browsertest.Eval[[]string](v.Browser, statements)
	v.Screenshot("visit-live")
	v.Visit(court)
	if !browsertest.Eval[bool](v.Browser, live) {
		v.t.Error("the page does not say that the trial was resumed")
	}
	if diff := cmp.Diff(before, browsertest.Eval[[]string](v.Browser, statements)); diff != "" {
		v.t.Errorf("after a reload (-before +after):\n%s", diff)
	}
	v.goOn()
	v.Wait(`!(` + live + `)`)
	end := browsertest.Eval[[]string](v.Browser, statements)
	if len(end) != 6 {
		v.t.Fatalf("%d statements: %s", len(end), end)
	}
	if diff := cmp.Diff(before, end[:3]); diff != "" {
		v.t.Errorf("at the end (-before +after):\n%s", diff)
	}
	if text := v.Text("#verdict"); !strings.Contains(text, "needs review") || strings.Contains(text, "degraded") {
		v.t.Errorf("the verdict is %q\n%s", text, v.Text(".bench"))
	}
	v.Screenshot("visit-verdict")
	return court
}

// notOwn checks that the submitter cannot decide.
func (v *visit) notOwn(court string) {
	v.t.Helper()
	v.Visit(v.at + "/reviews")
	v.Click(".docket a")
	v.loaded("/reviews/")
	if text := v.Text("main"); !strings.Contains(text, "another reviewer has to decide") || browsertest.Eval[bool](v.Browser, `document.querySelector('main form[method=post]') !== null`) {
		v.t.Errorf("the submitter may decide on the trial:\n%s", text)
	}
	v.Screenshot("visit-own")
}

// reviewAsAnother signs in as another person, with a token. This person fails the agent.
func (v *visit) reviewAsAnother(court string) {
	v.t.Helper()
	token, _ := v.command("access", "grant", "noa", "reviewer", "--reason", "she reviews", "--by", "mia")
	v.Click(".who button")
	v.Wait(`!document.querySelector(".who form")`)
	v.Visit(v.at + "/sign-in")
	v.Type("#token", strings.TrimSpace(token)+"\r")
	v.Wait(`document.querySelector(".who form")`)
	v.Visit(v.at + "/reviews")
	v.Screenshot("visit-desk")
	v.Click(".docket a")
	v.loaded("/reviews/")
	if !browsertest.Eval[bool](v.Browser, `document.querySelector("#message-1") !== null && document.querySelector('button[value="approved"]') === null`) {
		v.t.Error("the form is not beside the evidence, or accepts a decision without a choice")
	}
	v.Type("#reason", "A person has to speak with the patient.")
	v.Screenshot("visit-deciding")
	v.Click(`button[value="unsafe_fail"]`)
	v.Wait(`document.querySelector(".badge.approved_with_modifications")`)
	v.Screenshot("visit-decided")
	v.record()
	v.Visit(court)
	if text := v.Text("main"); !strings.Contains(text, "noa") || !strings.Contains(text, "A person has to speak with the patient.") {
		v.t.Errorf("the courtroom does not show the decision:\n%s", text)
	}
	if text := v.Text("#verdict"); !strings.HasPrefix(strings.TrimSpace(text), "unsafe, fails") || !strings.Contains(text, "decided by a person") || !strings.Contains(text, "needs review") {
		v.t.Errorf("the outcome is %q", text)
	}
	v.Click(`.actions a[href^="/chains/"]`)
	v.loaded("/chains/")
	v.Screenshot("visit-chain")
}

// record opens the record of the decision, and verifies its downloads.
func (v *visit) record() {
	v.t.Helper()
	v.Click(`.discussion a[href^="/records/"]`)
	v.loaded("/records/")
	v.Screenshot("visit-record")
	trust, _ := v.trust()
	for _, link := range []string{`.actions [href^="/v1/"]`, `.actions [href$="/bundle"]`} {
		if out, _ := v.command("verify", "--trust", trust, v.Download(link)); !strings.Contains(out, "PROVED") {
			v.t.Errorf("%s", out)
		}
	}
	v.checkedByOpenSSL(v.Download(`.actions [href$="/openssl"]`))
}

// checkedByOpenSSL runs the script in an archive beside the files to check.
func (v *visit) checkedByOpenSSL(archive string) {
	v.t.Helper()
	files := must.Get(zip.OpenReader(archive))(v.t)
	defer files.Close()
	folder := v.t.TempDir()
	must.Do(v.t, os.CopyFS(folder, files))
	if _, err := exec.LookPath("openssl"); err != nil && os.Getenv("CI") != "true" {
		return
	}
	check := exec.Command("sh", openssl.Script)
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil {
		v.t.Errorf("OpenSSL: %v\n%s", err, out)
	}
}

// provedInPortal has the served portal check a case file.
func (v *visit) provedInPortal(file string) {
	v.t.Helper()
	v.Click(`nav a[href="/verify"]`)
	v.Wait(`document.readyState === "complete" && document.querySelector("#files") && document.querySelector("h1").textContent`)
	v.answers("not proved", file)
	v.Click("#use-servers")
	v.Wait(`document.querySelector("#fingerprint")`)
	if _, said := v.command("trust"); !strings.Contains(said, v.Text("#fingerprint")) {
		v.t.Errorf("the page has the fingerprint %q, the command says %s", v.Text("#fingerprint"), said)
	}
	v.answers("proved", file)
	v.Screenshot("visit-portal")
	v.picture("portal", 1000, 1250)
	v.answers("refuted", v.changed(file))
}

// answers has the portal check a file.
func (v *visit) answers(want, file string) {
	v.t.Helper()
	for browsertest.Eval[bool](v.Browser, `document.querySelector("#chosen button") !== null`) {
		v.Click("#chosen button")
	}
	v.Choose("#files", file)
	v.Click("#check")
	v.Wait(`document.querySelector("#answers article") && !document.querySelector("#check").disabled`)
	if got := browsertest.Eval[string](v.Browser, `document.querySelector("#answers article").dataset.outcome ?? ""`); got != want {
		v.t.Errorf("%s: %q, want %q\n%s", file, got, want, v.Text("#results"))
	}
}

// changed writes a file with another verdict.
func (v *visit) changed(file string) string {
	v.t.Helper()
	doc := must.Get(os.ReadFile(file))(v.t)
	for _, position := range []string{"unsafe_fail", "needs_review"} {
		if bytes.Contains(doc, []byte(position)) {
			other := filepath.Join(v.t.TempDir(), "changed.jurat")
			must.Do(v.t, os.WriteFile(other, bytes.ReplaceAll(doc, []byte(position), []byte("safe_pass")), 0o600))
			return other
		}
	}
	v.t.Fatalf("%s has no verdict that the test can change", file)
	return ""
}

// inEveryLanguage reads the courtroom page on a phone.
func (v *visit) inEveryLanguage(court string) {
	v.t.Helper()
	v.Resize(360, 740)
	v.Visit(court)
	for _, tt := range []struct{ lang, badge string }{{"ja", "立場変更"}, {"ru", "позиция изменена"}, {"en", "position changed"}} {
		v.Click(`.bottom a[lang="` + tt.lang + `"]`)
		v.Wait(`document.documentElement?.lang === "` + tt.lang + `" && document.readyState === "complete"`)
		if badge := v.Text(".badge.changed"); badge != tt.badge {
			v.t.Errorf("%s: the badge says %q, want %q", tt.lang, badge, tt.badge)
		}
		if wide := browsertest.Eval[int](v.Browser, "document.documentElement.scrollWidth"); wide > 360 {
			v.t.Errorf("%s: %d wide on a phone", tt.lang, wide)
		}
		v.Screenshot("visit-" + tt.lang)
	}
	v.Resize(1280, 1000)
}

// fromDisk saves the case file and the portal page, ends the server, cuts the network, and uses the page.
func (v *visit) fromDisk(court string) {
	v.t.Helper()
	v.Visit(court)
	file := v.Download(".actions .button")
	trust, _ := v.trust()
	page := filepath.Join(v.dir, "verify.html")
	v.command("portal", "--out", page)
	v.CutOff()
	if browsertest.Eval[bool](v.Browser, `fetch("/healthz").then(() => true, () => false)`) {
		v.t.Fatal("the network is not cut")
	}
	v.stop()
	asked := len(v.Requests())
	v.Visit("file://" + page)
	v.answers("not proved", file)
	v.Choose("#trust", trust)
	v.Wait(`document.querySelector("#fingerprint")`)
	v.answers("proved", file)
	v.Screenshot("visit-disk")
	v.answers("refuted", v.changed(file))
	for _, address := range v.Requests()[asked:] {
		if address != "file://"+page && !strings.HasPrefix(address, "blob:null/") {
			v.t.Errorf("the saved page asked for %s", address)
		}
	}
}

// picture saves a screenshot of some size as a picture of the README, if pictures are wanted.
func (v *visit) picture(name string, width, height int) {
	v.t.Helper()
	folder := os.Getenv(pictures)
	if folder == "" {
		return
	}
	v.Resize(width, height)
	must.Do(v.t, os.WriteFile(filepath.Join(folder, name+".png"), v.Picture(), 0o644))
	v.Resize(1280, 1000)
}

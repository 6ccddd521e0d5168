package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/openssl"
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
		must.Hold(t, strings.Contains(problem, "ERR_INTERNET_DISCONNECTED"), "in the console: %s", problem) // fromDisk cuts the network
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
			return llmtest.Reply{Delay: 200 * time.Millisecond, Text: llmtest.Answer(c, position, percent, func(o object) { o["findings"] = found })}
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
		must.Want(v.t, cmd.Process.Signal(os.Interrupt), nil)
		err := cmd.Wait()
		must.Hold(v.t, err == nil, "it did not end well: %v\n%s", err, stderr)
	}
	v.t.Cleanup(func() {
		v.goOn()
		v.stop()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must.Need(v.t, err == nil, "%v\n%s", err, stderr)
	v.at = strings.TrimSpace(line)
	for end := time.Now().Add(time.Minute); !strings.Contains(stderr.String(), "Ctrl-C"); time.Sleep(5 * time.Millisecond) {
		must.Need(v.t, !time.Now().After(end), "no link is printed:\n%s", stderr) // the link was written before the address, but to another pipe
	}
	v.link = doing(v.t, 0, "--data", v.data, "access", "grant", "mia", "--link", "--at", v.at)
}

// command runs a command beside the server, and returns its output.
func (v *visit) command(args ...string) (stdout, stderr string) {
	v.t.Helper()
	cmd := exec.Command("jurat", append([]string{"--data", v.data}, args...)...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.dir, &out, &errs
	err := cmd.Run()
	must.Need(v.t, err == nil, "%v: %v\n%s%s", args, err, &out, &errs)
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
	text := v.Text(".who")
	must.Hold(v.t, strings.Contains(text, "mia"), "signed in as %q", text)
	v.Screenshot("visit-home")
}

// tryByKeyboard has an example tried, waits for the verdict, and saves the case file, which the command verifies.
func (v *visit) tryByKeyboard(example string) (file string) {
	v.t.Helper()
	v.Enter(`.examples form:has([value="` + example + `"]) button`)
	v.loaded("/submissions/")
	v.Wait(`document.querySelector("#judged:not([hidden])")`)
	text := v.Text("main")
	must.Hold(v.t, strings.Contains(text, "unsafe, fails") && strings.Contains(text, "rules"), "no verdict by rules:\n%s", text)
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
	must.Hold(v.t, browsertest.Eval[bool](v.Browser, live), "the page does not say that the trial was resumed")
	must.Equal(v.t, gocmp.Diff(before, browsertest.Eval[[]string](v.Browser, statements)), "", "after a reload (-before +after):\n")
	v.goOn()
	v.Wait(`!(` + live + `)`)
	end := browsertest.Eval[[]string](v.Browser, statements)
	must.Need(v.t, len(end) == 6, "%d statements: %s", len(end), end)
	must.Equal(v.t, gocmp.Diff(before, end[:3]), "", "at the end (-before +after):\n")
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
		out, _ := v.command("verify", "--trust", trust, v.Download(link))
		must.Hold(v.t, strings.Contains(out, "PROVED"), "%s", out)
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
	out, err := check.CombinedOutput()
	must.Hold(v.t, err == nil, "OpenSSL: %v\n%s", err, out)
}

// provedInPortal has the served portal check a case file.
func (v *visit) provedInPortal(file string) {
	v.t.Helper()
	v.Click(`nav a[href="/verify"]`)
	v.Wait(`document.readyState === "complete" && document.querySelector("#files") && document.querySelector("h1").textContent`)
	v.answers("not proved", file)
	v.Click("#use-servers")
	v.Wait(`document.querySelector("#fingerprint")`)
	_, said := v.command("trust")
	must.Hold(v.t, strings.Contains(said, v.Text("#fingerprint")), "the page has the fingerprint %q, the command says %s", v.Text("#fingerprint"), said)
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
		badge := v.Text(".badge.changed")
		must.Hold(v.t, badge == tt.badge, "%s: the badge says %q, want %q", tt.lang, badge, tt.badge)
		wide := browsertest.Eval[int](v.Browser, "document.documentElement.scrollWidth")
		must.Hold(v.t, wide <= 360, "%s: %d wide on a phone", tt.lang, wide)
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
	must.Need(v.t, !browsertest.Eval[bool](v.Browser, `fetch("/healthz").then(() => true, () => false)`), "the network is not cut")
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
		must.Hold(v.t, address == "file://"+page || strings.HasPrefix(address, "blob:null/"), "the saved page asked for %s", address)
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

// A view is what a stand-in for a model says at one time.
type view struct {
	position jury.Position
	percent  int
	why      string // the rationale, and in the discussion the statement
	finding  object // nil: it found nothing
}

// A told case is tried by stand-ins that say what a careful juror would. Its conversation is of our own writing.
type toldCase struct {
	name, agent, house, does string
	said                     []object
	alone, talk              [3]*view // by seat; nil: the seat does not answer
	judge                    view
	overruled                jury.Position // what a person decides; "": nobody decides
	reason                   string
	independent              bool // the proof rests on a clock and witnesses outside
	exit                     int
}

// told makes a conversation of pairs of role and text; "tool NAME" is the result of a call of this name that the agent made before.
func told(pairs ...string) (list []object) {
	for pair := range slices.Chunk(pairs, 2) {
		name, call := strings.CutPrefix(pair[0], "call ")
		id := fmt.Sprintf("call_%d", len(list))
		switch {
		case call:
			list = append(list, object{"role": "assistant", "content": "", "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": name, "arguments": pair[1]}}}})
		case pair[0] == "result":
			list = append(list, object{"role": "tool", "tool_call_id": fmt.Sprintf("call_%d", len(list)-1), "content": pair[1]})
		default:
			list = append(list, object{"role": pair[0], "content": pair[1]})
		}
	}
	return list
}

// quotes is what a stand-in finds and quotes.
func quotes(message int, quote, rule, axis, severity, why string) object {
	return object{"message": message, "quote": quote, "rule": rule, "axis": axis, "severity": severity, "explanation": why}
}

// reply answers as the case has it.
func (c *toldCase) reply(seat int, call llmtest.Call) llmtest.Reply {
	talks := strings.Contains(string(call.Schema.JSON), `"statement"`)
	v := &c.judge
	if seat < 3 {
		v = c.alone[seat]
		if talks {
			v = cmp.Or(c.talk[seat], v)
		}
	}
	if v == nil {
		return llmtest.Reply{Failure: llmtest.ServerError}
	}
	return llmtest.Reply{Text: llmtest.Answer(call, v.position, v.percent, func(o object) {
		o["rationale"] = v.why
		if talks {
			o["statement"], o["reasoning"] = v.why, "It is what the quoted words say."
		}
		if v.finding != nil {
			found := object{}
			for name, value := range v.finding {
				found[name] = value
			}
			if strings.Contains(string(call.Schema.JSON), `"from"`) {
				found["from"] = "none"
			}
			o["findings"] = []object{found}
		}
	})}
}

// A hall is an installation with a server, in which told cases are tried.
type hall struct {
	*scene
	now *toldCase
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{}
	scripts := map[int]llmtest.Script{}
	for seat := range seatIDs {
		scripts[seat] = func(c llmtest.Call) llmtest.Reply { return h.now.reply(seat, c) }
	}
	h.scene = newScene(t, scripts)
	return h
}

// config seats jurors with the roles of the usual panel.
func (h *hall) config() string {
	h.t.Helper()
	roles := []string{"Policy compliance", "Safety and leaks", "Misuse and intent", "Final judge"}
	doc := "panel: thorough\nseats:\n"
	for i, id := range seatIDs {
		if i == 3 {
			doc += "judge:\n"
		}
		dash := "  - "
		if i == 3 {
			dash = "  "
		}
		doc += fmt.Sprintf("%s{id: %s, role: %s, provider: %s, model: %s, base_url: '%s', key: {env: %s}, attempts: 1}\n", dash, id, roles[i], providers[i], seatModels[i], h.servers[i].URL, seatKeys[i])
	}
	return write(h.t, filepath.Join(h.dir, "panel.yaml"), doc)
}

// outside adds an independent clock, and two witnesses who must both cosign.
func (h *hall) outside() {
	h.t.Helper()
	tsa := must.Get(jurattest.StartTSA())(h.t)
	h.t.Cleanup(tsa.Close)
	root := write(h.t, filepath.Join(h.dir, "root.pem"), string(tsa.PEM()))
	doing(h.t, 0, "--data", h.data, "tsa", "notary", tsa.URL, "--root", root)
	trust := write(h.t, filepath.Join(h.dir, "plain.json"), doing(h.t, 0, "--data", h.data, "trust"))
	for i, name := range []string{"north", "south"} {
		folder := filepath.Join(h.dir, name)
		key := doing(h.t, 0, "witness", "--init", "witness.example/"+name, "--dir", folder)
		url, _, _ := serve(h.t, "witness", "--dir", folder, "--addr", "127.0.0.1:0", "--log", trust)
		doing(h.t, 0, "--data", h.data, "log", "witness", url, "--key", key, "--quorum", fmt.Sprint(i+1))
	}
}

// try tries a case, and returns the trial's id and its result as JSON.
func (h *hall) try(c *toldCase) (id, doc string) {
	h.t.Helper()
	h.now = c
	folder := filepath.Join(h.dir, c.name)
	must.Do(h.t, os.MkdirAll(folder, 0o700))
	for name, value := range map[string]any{"agent-card.json": object{"name": c.agent, "description": c.does, "version": "2.1.0", "provider": object{"organization": c.house, "url": "https://" + c.name + ".example"}},
		"conversation.json": c.said} {
		text := must.Get(json.MarshalIndent(value, "", "  "))(h.t)
		write(h.t, filepath.Join(folder, name), string(text))
	}
	doc, _ = ran(h.t, c.exit, "--data", h.data, "trial", folder, "--config", h.config(), "--json", "--out", filepath.Join(h.dir, "case.jurat"))
	return h.records()[0].Payload.ChainID, doc
}

// TestFirstScreens: without scrolling, a window of 1280 by 800 shows what was decided, by whom, why, on which message, who
// disagreed, and what the proof rests on, in six trials that ended differently.
func TestFirstScreens(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes long in a browser")
	}
	browsertest.Find(t)
	b := browsertest.Open(t, browsertest.Options{Width: 1280, Height: 800})
	for _, independent := range []bool{false, true} {
		h := newHall(t)
		doing(t, 0, "--data", h.data, "init")
		if independent {
			h.outside()
		}
		ids := map[string]string{}
		for i := range toldCases {
			c := &toldCases[i]
			if c.independent != independent {
				continue
			}
			id, doc := h.try(c)
			ids[c.name] = id
			if folder := os.Getenv(browsertest.Screenshots); folder != "" {
				write(t, filepath.Join(folder, fmt.Sprintf("case%d.json", i+1)), doc)
			}
		}
		at, _, stop := serve(t, "--data", h.data, "serve", "--addr", "127.0.0.1:0")
		b.Visit(doing(t, 0, "--data", h.data, "access", "grant", "mia", "--link", "--at", at))
		b.Click("main button")
		b.Wait(`location.pathname === "/" && document.readyState === "complete"`)
		for i := range toldCases {
			if c := &toldCases[i]; c.independent == independent {
				t.Run(c.name, func(t *testing.T) { firstScreen(t, h, b, at, i, ids[c.name]) })
			}
		}
		stop()
	}
}

// firstScreen looks at one courtroom.
func firstScreen(t *testing.T, h *hall, b *browsertest.Browser, at string, i int, id string) {
	c := &toldCases[i]
	court := at + "/submissions/" + id
	b.Visit(court)
	if c.overruled != "" {
		judgment := browsertest.Eval[string](b, `document.querySelector('#judged a[href^="/reviews/"]').getAttribute("href").split("/").pop()`)
		token := doing(t, 0, "--data", h.data, "access", "grant", "Noa Lindqvist", "reviewer", "--reason", "she reviews", "--by", "mia")
		body, err := json.Marshal(object{"approval_status": "approved_with_modifications", "modified_response": object{"position": c.overruled}, "changes": c.reason})
		must.Do(t, err)
		status, answer := postTo(t, at+"/v1/records/"+judgment+"/reviews", token, "decides", string(body))
		must.Need(t, status == 201, "%d %s", status, answer)
		b.Visit(court)
	}
	if folder := os.Getenv(browsertest.Screenshots); folder != "" {
		must.Do(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("case%d.png", i+1)), b.Picture(), 0o644))
	}
	seen, whole, _ := strings.Cut(browsertest.Eval[string](b, `(g => g.clientWidth + " of " + g.scrollWidth)(document.querySelector("#grid"))`), " of ")
	must.Hold(t, seen == whole, "the table of votes is cut: %s of %s pixels are seen", seen, whole)
	for _, part := range []string{"#verdict", "#because .by", "#because .reason", "#because .rests, #because .unfound", "#because .against", "#grid tfoot", ".proof"} {
		bottom := browsertest.Eval[float64](b, fmt.Sprintf("document.querySelector(%q)?.getBoundingClientRect().bottom ?? -1", part))
		must.Hold(t, bottom >= 0 && bottom <= 800, "%s ends at %.0f, which is not on the first screen", part, bottom)
	}
}

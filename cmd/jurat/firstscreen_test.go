package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/browsertest"
	"jurat/internal/llm/llmtest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
)

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
	return llmtest.Reply{Text: answer(call, v.position, v.percent, func(o object) {
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
		if status, answer := postTo(t, at+"/v1/records/"+judgment+"/reviews", token, "decides", string(body)); status != 201 {
			t.Fatalf("%d %s", status, answer)
		}
		b.Visit(court)
	}
	if folder := os.Getenv(browsertest.Screenshots); folder != "" {
		must.Do(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("case%d.png", i+1)), b.Picture(), 0o644))
	}
	if seen, whole, _ := strings.Cut(browsertest.Eval[string](b, `(g => g.clientWidth + " of " + g.scrollWidth)(document.querySelector("#grid"))`), " of "); seen != whole {
		t.Errorf("the table of votes is cut: %s of %s pixels are seen", seen, whole)
	}
	for _, part := range []string{"#verdict", "#because .by", "#because .reason", "#because .rests, #because .unfound", "#because .against", "#grid tfoot", ".proof"} {
		bottom := browsertest.Eval[float64](b, fmt.Sprintf("document.querySelector(%q)?.getBoundingClientRect().bottom ?? -1", part))
		if bottom < 0 || bottom > 800 {
			t.Errorf("%s ends at %.0f, which is not on the first screen", part, bottom)
		}
	}
}

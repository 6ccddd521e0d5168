package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/reputation/draw"
)

// TestDraws: witnesses draw, the operator seals it, and a stranger computes from files alone what was drawn and what is missing. An operator that
// keeps one witness's draws back shows gaps.
func TestDraws(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data}, args...)...) + "\n"
	}
	log := watchedLog(data)
	log.grow(t, 130, "one")
	jurat(exitCannot, "log", "draw", "ask")
	jurat(exitCannot, "log", "draw", "list")

	plain := write("plain.json", jurat(0, "trust"))
	keys := map[string]string{}
	var stops []func() int
	for _, name := range []string{"w1", "w2"} {
		dir := filepath.Join(folder, name)
		keys[name] = doing(t, 0, "witness", "init", "witness.example/"+name, "--dir", dir)
		url, _, stop := serve(t, "witness", "serve", "--dir", dir, "--addr", "127.0.0.1:0", "--log", plain)
		stops = append(stops, stop)
		jurat(0, "log", "witness", "add", url, "--key", keys[name], "--quorum", "1")
	}
	if out := jurat(0, "log", "draw", "ask"); strings.Count(out, "has drawn 2 of 2 blocks, 2 now") != 2 {
		t.Error(out)
	}
	if out := jurat(0, "log", "draw", "ask"); strings.Count(out, "has drawn 2 of 2 blocks, 0 now") != 2 {
		t.Error(out)
	}
	out := jurat(0, "log", "draw", "list", "--share", "8")
	drawn := strings.Count(out, "NOT TRIED")
	if drawn < 8 || drawn > 80 || strings.Contains(out, "NOT DRAWN") || !strings.Contains(out, "the last 3 entries") {
		t.Error(out)
	}

	// What the operator has, a stranger finds from files, byte for byte.
	trust := write("trust.json", jurat(0, "trust"))
	checkpoint, entries := write("now.checkpoint", jurat(0, "log", "checkpoint")), write("entries.jsonl", jurat(0, "log", "entries"))
	draws := write("draws.jurat", jurat(0, "log", "case", "operator-draws"))
	alone := []string{"log", "draw", "list", "--share", "8", "--trust", trust, "--checkpoint", checkpoint, "--entries", entries}
	here := jurat(0, "log", "draw", "list", "--share", "8", "--json")
	if there := doing(t, 0, append(alone, draws, "--json")...) + "\n"; there != here || !strings.Contains(here, `"format":"jurat/draws/v1"`) {
		t.Errorf("%s, and from the log %s", there, here)
	}
	if out := doing(t, exitUndecided, alone...); strings.Count(out, "NOT DRAWN: entries 0 to 127 by witness.example/w") != 2 {
		t.Error(out)
	}
	if one := doing(t, 0, append(alone, draws, "--witness", keys["w1"])...); strings.Count(one, "NOT TRIED") >= drawn || strings.Contains(one, "w2") {
		t.Error(one)
	}
	doing(t, exitCannot, append(alone[:len(alone)-2], draws)...)
	doing(t, exitCannot, "log", "draw", "list", "--trust", plain, "--checkpoint", checkpoint, "--entries", entries, draws)
	doing(t, exitCannot, "log", "draw", "list", "--trust", trust, "--checkpoint", checkpoint, "--entries", draws)

	// Of one agent: its records alone, and each without a trial is a debt.
	if out := jurat(exitUndecided, "log", "draw", "list", "--share", "1", "--agent", "courier"); strings.Count(out, "NOT TRIED") != 128 {
		t.Error(out)
	}
	if out := jurat(0, "log", "draw", "list", "--share", "1", "--agent", "another"); strings.Contains(out, "NOT TRIED") {
		t.Error(out)
	}

	// A drawn record is tried, once, under the id that follows from it. Its debt is gone.
	var listed draw.Result
	if err := json.Unmarshal([]byte(jurat(exitUndecided, "log", "draw", "list", "--share", "1", "--agent", "courier", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	digest := listed.Drawn[5].Record
	proved := write("drawn.json", jurat(0, "log", "prove", digest.String()))
	try := []string{"trial", proved, "--trust", trust, "--jurors", "offline", "--drawn", digest.String()}
	jurat(0, try...)
	if out := jurat(exitUndecided, "log", "draw", "list", "--share", "1", "--agent", "courier"); strings.Count(out, "NOT TRIED") != 127 || strings.Count(out, "acts") != 1 {
		t.Error(out)
	}
	jurat(exitCannot, try...)
	jurat(exitCannot, append(try[:6:6], "--drawn", listed.Drawn[4].Record.String())...)
	jurat(exitCannot, append(try[:6:6], "--drawn", "nothing")...)
	jurat(exitCannot, append(try[:6:6], "--drawn", digest.String(), proved)...)

	// One witness is away: what the other draws is sealed, and the gap shows. A server catches up by itself.
	stops[1]()
	log.grow(t, 130, "two")
	if out := jurat(exitUndecided, "log", "draw", "ask"); !strings.Contains(out, "has drawn 4 of 4 blocks, 2 now") || !strings.Contains(out, "has drawn 2 of 4 blocks, 0 now, and no more: ") {
		t.Error(out)
	}
	if out := jurat(exitUndecided, "log", "draw", "list", "--share", "8"); !strings.Contains(out, "NOT DRAWN: entries 128 to 255 by witness.example/w2") {
		t.Error(out)
	}
	url, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	log.grow(t, 130, "three")
	token := strings.TrimSpace(jurat(0, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if metrics := readAs(t, token, url+"/metrics"); strings.Contains(metrics, "\njurat_log_draws_missing 4\n") {
			break
		} else if time.Now().After(until) {
			t.Fatal(metrics)
		}
	}
	if out := jurat(0, "log", "draw", "list", "--share", "8", "--witness", keys["w1"]); strings.Contains(out, "NOT DRAWN") {
		t.Error(out)
	}
}

func readAs(t *testing.T, token, url string) string {
	t.Helper()
	ask, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestDrawnAndNotJudged: a trial that has begun and was not judged is a debt, as one that has not begun.
func TestDrawnAndNotJudged(t *testing.T) {
	for _, c := range []struct {
		record draw.Record
		says   string
		code   exitCode
	}{{draw.Record{}, "NOT TRIED", exitUndecided}, {draw.Record{Acts: 5}, "NOT JUDGED, trial of 5 acts", exitUndecided}, {draw.Record{Acts: 5, Judged: true}, "  trial of 5 acts", 0}} {
		var out bytes.Buffer
		err := (&logDrawListCmd{Agent: "courier"}).print(stdio{out: &out}, &draw.Result{Drawn: []draw.Record{c.record}})
		var code exitCode
		if errors.As(err, &code); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%+v: %v\n%s", c.record, err, &out)
		}
	}
}

// TestRecordedActsInFiles: a stranger finds whose acts recorders saw in the records that they are given.
func TestRecordedActsInFiles(t *testing.T) {
	t.Parallel()
	h := jurattest.New(t)
	act := evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: "call", Timestamp: evidence.FormatTime(h.Now()), Response: jsontext.Value(`"In Kassel."`),
		Observed: &evidence.Observed{Agent: "courier", Began: evidence.FormatTime(h.Now()), Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: evidence.JudgedAgent, Protocol: "other/1", Vantage: evidence.InProcess}}
	seen := h.Seal(t, act)
	act.Observed.Judged = ""
	earlier := h.Seal(t, act)
	doc, err := h.Bundle(t, seen, earlier).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	whose := map[evidence.Digest]evidence.Digest{}
	if draws, err := readDraws(written(t, string(doc)), whose); err != nil || len(draws) > 0 {
		t.Fatalf("%v, %v", draws, err)
	}
	none, known := whose[earlier.Digest]
	if whose[seen.Digest] != evidence.ActorTag(evidence.RoleAgent, "courier") || !none.IsZero() || !known {
		t.Errorf("%v", whose)
	}
	tags := recordersOf(h.Options(t).Trust)
	if !tags[evidence.ActorTag(evidence.RoleRecorder, "gate")] || tags[evidence.ActorTag(evidence.RoleAgent, "courier")] {
		t.Errorf("%v", tags)
	}
	var code exitCode
	if err := (&logDrawListCmd{Agent: "courier"}).print(stdio{out: new(bytes.Buffer)}, &draw.Result{Unread: 1}); !errors.As(err, &code) || code != exitUndecided {
		t.Errorf("%v", err)
	}
}

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// processes returns several servers on one folder of one machine. None of them runs yet.
func processes(t *testing.T, count int) []*machine {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "data")
	var list []*machine
	for range count {
		m := &machine{t: t, env: os.Environ(), args: []string{"--data", folder}}
		t.Cleanup(m.kill)
		list = append(list, m)
	}
	return list
}

// A move is a trial on one of several servers, to which the test then does something. The third juror's answer in the
// round of discussion is delayed until letGo.
type move struct {
	*scene
	list      []*machine
	submitter string
	auditor   string
	id        string
	conductor *machine
	letGo     func()
}

const discussion = 2 // the number of a juror's call in the round of discussion, where no juror is asked twice

// furnish starts the servers, whose jurors answer by these scripts.
func furnish(t *testing.T, places func(*testing.T, int) []*machine, count int, scripts map[int]llmtest.Script) *move {
	t.Helper()
	s := newScene(t, scripts)
	s.rest = "rounds: 1\n"
	v := &move{scene: s, list: places(t, count)}
	for _, m := range v.list {
		m.with = []string{"--config", s.config()}
	}
	must.Do(t, v.list[0].start()) // the first start makes the installation
	startAll(t, v.list[1:])
	v.submitter, v.auditor = v.list[0].grant("sam", "submitter"), v.list[0].grant("ada", "auditor")
	return v
}

// begin starts the servers, submits a trial, and returns in the middle of its round: two jurors have answered, and their
// acts are sealed.
func begin(t *testing.T, places func(*testing.T, int) []*machine, count int) *move {
	t.Helper()
	gate := make(chan struct{})
	says := finds(jury.SafePass, 90)
	v := furnish(t, places, count, map[int]llmtest.Script{2: func(c llmtest.Call) llmtest.Reply {
		if c.Number == discussion {
			<-gate
		}
		return says(c)
	}})
	v.letGo = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(v.letGo)
	v.id = v.submit()
	v.await("ten acts", func(s *api.Submission) bool { return s.Acts == 10 }) // submission, opening, three evaluations, the judge's reading, check, opening, two statements
	for _, m := range v.list {
		if _, metrics := m.get(v.auditor, "/metrics"); strings.Contains(metrics, "jurat_trials_under_way 1\n") {
			v.conductor = m
		}
	}
	must.Need(t, v.conductor != nil, "no server conducts the trial")
	return v
}

func (v *move) submit() string {
	v.t.Helper()
	card := must.Get(os.ReadFile(filepath.Join(v.accused, "agent-card.json")))(v.t)
	conversation := must.Get(os.ReadFile(filepath.Join(v.accused, "conversation.json")))(v.t)
	body := fmt.Sprintf(`{"agentCard":%s,"conversation":%s}`, card, conversation)
	r := must.Get(http.NewRequest("POST", v.list[0].address()+"/v1/submissions", strings.NewReader(body)))(v.t)
	r.Header.Set("Authorization", "Bearer "+v.submitter)
	answer := must.Get(http.DefaultClient.Do(r))(v.t)
	defer answer.Body.Close()
	var made api.Submission
	err := json.NewDecoder(answer.Body).Decode(&made)
	must.Need(v.t, err == nil && answer.StatusCode == http.StatusAccepted, "%v %v", answer.Status, err)
	return made.ID
}

// others returns the servers other than the conductor.
func (v *move) others() (list []*machine) {
	for _, m := range v.list {
		if m != v.conductor {
			list = append(list, m)
		}
	}
	return list
}

// await waits until another server than the conductor shows the trial in this state.
func (v *move) await(what string, is func(*api.Submission) bool) api.Submission {
	v.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		status, doc := v.others()[0].get(v.auditor, "/v1/submissions/"+v.id)
		var s api.Submission
		err := json.Unmarshal([]byte(doc), &s)
		must.Need(v.t, err == nil && status == http.StatusOK, "%v %v %v", status, err, doc)
		if is(&s) {
			return s
		}
		if time.Now().After(end) {
			v.t.Fatalf("waiting for %s: %+v\n%s", what, s, v.others()[0].said)
		}
	}
}

func isOver(s *api.Submission) bool { return s.State == api.Over }

// wantOnce requires that the trial verifies, that each sealed answer was asked for once, and that the third juror's lost
// answer was asked for this many times again.
func (v *move) wantOnce(again int) {
	v.t.Helper()
	for i, server := range v.servers {
		want := map[int]int{0: 2, 1: 2, 2: 2 + again, 3: 2}[i] // the judge reads alone, and judges
		bodies := map[string]int{}
		for _, r := range server.Requests() {
			bodies[string(r.Body)]++
		}
		if n := len(server.Requests()); n != want || len(bodies) != min(want, 2) {
			v.t.Errorf("%s was asked %d times for %d things, want %d", seatIDs[i], n, len(bodies), want)
		}
	}
	v.wantWhole()
}

// wantWhole requires that the trial has every act once, and verifies.
func (v *move) wantWhole() {
	v.t.Helper()
	m := v.others()[0]
	_, doc := m.get(v.auditor, "/v1/submissions/"+v.id+"/case")
	file, trust := filepath.Join(v.dir, "case.jurat"), filepath.Join(v.dir, "trust.json")
	for name, content := range map[string]string{file: doc, trust: m.do("trust")} {
		must.Do(v.t, os.WriteFile(name, []byte(content), 0o600))
	}
	ran(v.t, 0, "verify", "--trust", trust, file)
	must.Equal(v.t, len(v.records()), 16)
}

// TestTrialGoesOnElsewhere: the server that conducts a trial is killed in the middle of a round. Another server ends the
// trial, asks no juror with a sealed answer again, and the case file verifies.
func TestTrialGoesOnElsewhere(t *testing.T) {
	var moves []*move // each waits until the conductor's lease has ended
	for _, places := range []func(*testing.T, int) []*machine{machines, processes} {
		v := begin(t, places, 3)
		v.conductor.kill()
		moves = append(moves, v)
	}
	for _, v := range moves {
		s := v.await("the end", isOver)
		if s.Verdict == nil || s.Verdict.Position != jury.SafePass || s.Degraded {
			t.Errorf("%q: %+v", v.list[0].args, s)
		}
		v.letGo()
		v.wantOnce(1)
	}
}

// TestTrialOfOneWhoStandsStill: the server that conducts a trial is stopped for longer than others wait, and then
// continues. The trial ends once. With a database, whose sessions show who is alive, another server has ended it
// meanwhile. On one machine, the operating system shows that the stopped process is alive.
func TestTrialOfOneWhoStandsStill(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("takes a minute: set JURAT_TEST_LONG=1")
	}
	signal := func(t *testing.T, m *machine, what syscall.Signal) {
		t.Helper()
		must.Do(t, m.process.Process.Signal(what))
	}
	t.Run("three machines", func(t *testing.T) {
		v := begin(t, machines, 3)
		signal(t, v.conductor, syscall.SIGSTOP)
		v.await("the end", isOver)
		v.letGo() // the answer goes to the stopped server
		signal(t, v.conductor, syscall.SIGCONT)
		time.Sleep(3 * time.Second)
		v.wantOnce(1)
		_, metrics := v.conductor.get(v.auditor, "/metrics")
		must.Hold(t, strings.Contains(metrics, "jurat_trials_under_way 0\n"), "the server still conducts a trial that is over")
	})
	t.Run("two processes", func(t *testing.T) {
		v := begin(t, processes, 2)
		signal(t, v.conductor, syscall.SIGSTOP)
		time.Sleep(20 * time.Second)
		v.await("what it was", func(s *api.Submission) bool { return s.State == api.UnderWay && s.Acts == 10 })
		v.letGo()
		signal(t, v.conductor, syscall.SIGCONT)
		v.await("the end", isOver)
		v.wantOnce(0)
	})
}

// TestTrialsThroughKills: 22 trials, while their servers are killed thirty times at moments of chance. Each is over, with every act once, and verifies.
func TestTrialsThroughKills(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("takes minutes: set JURAT_TEST_LONG=1")
	}
	says := finds(jury.SafePass, 90)
	slowly := func(c llmtest.Call) llmtest.Reply {
		time.Sleep(rand.N(2 * time.Second))
		return says(c)
	}
	for name, places := range map[string]func(*testing.T, int) []*machine{"three machines": machines, "three processes": processes} {
		t.Run(name, func(t *testing.T) {
			v := furnish(t, places, 3, map[int]llmtest.Script{0: slowly, 1: slowly, 2: slowly, 3: slowly})
			var ids []string
			for range 22 {
				ids = append(ids, v.submit())
			}
			for range 30 {
				time.Sleep(rand.N(time.Second))
				m := v.list[rand.N(len(v.list))]
				m.kill()
				must.Do(t, m.start())
			}
			under := 0
			for _, v.id = range ids {
				if s := v.await("a state", func(*api.Submission) bool { return true }); !isOver(&s) {
					under++
				}
			}
			t.Logf("after the last kill %d trials were not over", under)
			for _, v.id = range ids {
				s := v.await("the end", isOver)
				must.Hold(t, s.Verdict != nil && s.Verdict.Position == jury.SafePass && !s.Degraded, "%+v", s)
				v.wantWhole()
			}
			for i, server := range v.servers {
				t.Logf("%s was asked %d times", seatIDs[i], len(server.Requests()))
			}
			v.list[0].do("log", "fsck")
		})
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/recorded"
	"jurat/internal/recording"
)

// TestRecordStatus: the status says what a recorder that was killed left, and after the next one that it was lost. The doctor says so too.
func TestRecordStatus(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	defer model.Close()
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	if said := doing(t, 0, "--data", data, "record", "status"); !strings.Contains(said, "No recorder") {
		t.Errorf("%s", said)
	}
	proxy := exec.Command("jurat", "--data", data, "record", "proxy", "--agent", "mia", "--listen", "127.0.0.1:0", "--upstream", "openai="+model.URL)
	endsWithTest(t, proxy)
	out := must.Get(proxy.StdoutPipe())(t)
	must.Do(t, proxy.Start())
	at := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	go func() {
		if answer, err := http.Post(strings.TrimSpace(at)+"/openai/v1/chat/completions", "application/json", strings.NewReader(`{}`)); err == nil {
			answer.Body.Close()
		}
	}()
	<-asked
	if said := doing(t, 0, "--data", data, "record", "status"); !strings.Contains(said, "it runs since") || !strings.Contains(said, "1 call under way") {
		t.Errorf("while it runs: %s", said)
	}
	must.Do(t, proxy.Process.Kill())
	proxy.Wait() // it was killed
	for _, command := range [][]string{{"record", "status"}, {"doctor"}} {
		if said := strings.Join(strings.Fields(doing(t, 1, append([]string{"--data", data}, command...)...)), " "); !strings.Contains(said, "it died with 1 call under way") || !strings.Contains(said, "start one") {
			t.Errorf("%v, when it is dead: %s", command, said)
		}
	}
	doing(t, 0, "--data", data, "record", "run", "--agent", "mia", "--", "true")
	var s recorderStatus
	must.Do(t, json.Unmarshal([]byte(doing(t, 0, "--data", data, "record", "status", "--json")), &s))
	if len(s.Here) != 0 || len(s.Log) != 1 || s.Log[0].Lost != 1 || s.Log[0].Reason != "the program ended" || s.Log[0].Calls != 0 || !s.Log[0].Counted {
		t.Errorf("%+v", s)
	}
}

// TestCallsInStatus: nothing says that a recorder sealed no calls when its end tells none.
func TestCallsInStatus(t *testing.T) {
	running := recording.Process{Running: true, About: recording.About{Recorder: "r"}, State: recording.State{Sealed: 5}}
	dead := recording.Process{About: recording.About{Recorder: "r"}, State: recording.State{Sealed: 5}}
	for _, test := range []struct {
		here  []recording.Process
		beats int64
		ended bool // and said how many calls
		want  string
	}{
		{nil, 0, false, "-"},
		{nil, 3, false, "≥ 3"},
		{nil, 3, true, "3"},
		{nil, 0, true, "0"},
		{[]recording.Process{dead}, 3, false, "≥ 3"},
		{[]recording.Process{running}, 3, false, "5"},
		{[]recording.Process{running}, 7, false, "7"},
		{[]recording.Process{{Running: true, About: recording.About{Recorder: "r"}}}, 0, false, "0"},
		{[]recording.Process{{Running: true, About: recording.About{Recorder: "other"}, State: recording.State{Sealed: 5}}}, 0, false, "-"},
	} {
		s := recorderStatus{Here: test.here}
		if got := s.calls(recorded.Recorder{Name: "r", Calls: test.beats, Counted: test.ended}); got != test.want {
			t.Errorf("%+v, %d by heartbeats: %s, want %s", test.here, test.beats, got, test.want)
		}
	}
}

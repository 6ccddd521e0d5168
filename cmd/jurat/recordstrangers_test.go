package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/must"
)

// TestPagesAreNotTheAgent: what a web page has a browser send to a recorder is refused, and nothing of it is sealed: by the browser's own word, by the page's origin, or by the name under which it asks.
func TestPagesAreNotTheAgent(t *testing.T) {
	t.Parallel()
	model := newWiseModel(t)
	for name, args := range map[string][]string{
		"proxy":  {"proxy", "--agent", "mia", "--upstream", "wise=" + model.URL},
		"a2a":    {"a2a", "--agent", "mia", "--upstream", model.URL},
		"caller": {"a2a", "--agent", "mia", "--as", "caller", "--upstream", model.URL},
		"mcp":    {"mcp", "--agent", "mia", "--upstream", model.URL + "/wise/x"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		at, _, stop := serve(t, append(append([]string{"--data", data, "record"}, args...), "--listen", "127.0.0.1:0")...)
		at = "http://" + strings.Split(at, "/")[2]
		for header, want := range map[string]int{
			"Sec-Fetch-Site: cross-site": 403, "Sec-Fetch-Site: same-site": 403, "Origin: https://evil.example": 403, "Origin: null": 403,
			"Host: evil.example": 421, "Host: 127.0.0.1.evil.example:8419": 421,
		} {
			req := must.Get(http.NewRequest("POST", at+"/wise/x", strings.NewReader(asksWise)))(t)
			key, value, _ := strings.Cut(header, ": ")
			if req.Header.Set(key, value); key == "Host" {
				req.Host = value
			}
			answer := must.Get(http.DefaultClient.Do(req))(t)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s, %s: %d, want %d", name, header, answer.StatusCode, want)
			}
		}
		if code := stop(); code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		if found := doing(t, 0, "--data", data, "record", "chains"); strings.Contains(found, "mia") {
			t.Errorf("%s: a page's call is sealed: %s", name, found)
		}
	}
	if len(model.asked) > 0 {
		t.Errorf("the model was asked: %v", model.asked)
	}
}

// TestLogHasNoAnswers: what a server sends unasked on a connection is an answer's words, which Go's library would log. With --log-json every line is JSON, and in no log are such words.
func TestLogHasNoAnswers(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n\"marked\" \\words of an \"answer\"\n")
					time.Sleep(200 * time.Millisecond)
				}
			}()
		}
	}()
	for _, args := range [][]string{{"proxy", "--agent", "mia", "--upstream", "wise=http://" + listener.Addr().String(), "--log-json"}, {"a2a", "--agent", "mia", "--upstream", "http://" + listener.Addr().String()}} {
		recorder := exec.Command("jurat", append(append([]string{"--data", filepath.Join(t.TempDir(), "data"), "record"}, args...), "--listen", "127.0.0.1:0")...)
		said := new(lines)
		recorder.Stderr = said
		endsWithTest(t, recorder)
		stdout := must.Get(recorder.StdoutPipe())(t)
		must.Do(t, recorder.Start())
		var at string
		must.Get(fmt.Fscanln(stdout, &at))(t)
		for n := 0; !strings.Contains(said.String(), "Unsolicited"); n++ { // HEAD has no body, so what comes is not expected
			if n == 200 {
				t.Fatalf("the library logs nothing: %s", said)
			}
			answer := must.Get(http.Head(at + "/wise/v1/models"))(t)
			answer.Body.Close()
			time.Sleep(20 * time.Millisecond)
		}
		must.Do(t, recorder.Process.Signal(syscall.SIGTERM))
		must.Do(t, recorder.Wait())
		if strings.Contains(said.String(), "marked") || strings.Contains(said.String(), "words of an") {
			t.Errorf("the log has an answer's words: %s", said)
		}
		for line := range strings.Lines(said.String()) {
			var values map[string]any
			if args[len(args)-1] == "--log-json" && json.Unmarshal([]byte(line), &values) != nil {
				t.Errorf("no line of JSON: %s", line)
			}
		}
	}
}

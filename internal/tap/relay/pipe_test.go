package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// A talk is a client and a server with a pipe between them. Each side writes and reads lines.
type talk struct {
	*recorder
	t              *testing.T
	pipe           *Pipe
	client, server *tongue
	ended          chan error
}

// A tongue is one side of a talk.
type tongue struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func (s *tongue) say(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		_, err := io.WriteString(s.in, line+"\n")
		must.Do(s.t, err)
	}
}

func (s *tongue) hear(want string) {
	s.t.Helper()
	got, err := s.out.ReadString('\n')
	must.Need(s.t, got == want+"\n" && err == nil, "%.200q, %v, want %q", got, err, want)
}

func newTalk(t *testing.T, change func(*Options)) *talk {
	t.Helper()
	k := &talk{recorder: newRecorder(), t: t, ended: make(chan error, 1)}
	o := Options{Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)}
	if change != nil {
		change(&o)
	}
	k.pipe = must.Get(New(k.recorder, o))(t).Pipe(PipeOptions{Origin: "stdio:test", Server: "s", Chain: "c"})
	clientOut, clientIn := io.Pipe() // what the client says
	serverOut, serverIn := io.Pipe()
	toClient, fromServer := io.Pipe()
	toServer, fromClient := io.Pipe()
	k.client, k.server = &tongue{t, clientIn, bufio.NewReader(toClient)}, &tongue{t, serverIn, bufio.NewReader(toServer)}
	go func() {
		k.ended <- k.pipe.Run(clientOut, fromServer, serverOut, fromClient)
		_ = fromServer.Close()
	}()
	t.Cleanup(func() {
		for _, c := range []io.Closer{clientIn, serverIn, toClient, toServer} {
			_ = c.Close()
		}
	})
	return k
}

// end ends the client, then the server, and returns what Run said.
func (k *talk) end() error {
	k.t.Helper()
	_ = k.client.in.Close()
	text, err := k.server.out.ReadString('\n')
	must.Need(k.t, err == io.EOF, "the server is not told that its client has ended: %q, %v", text, err)
	_ = k.server.in.Close()
	return k.over()
}

func (k *talk) over() error {
	k.t.Helper()
	select {
	case err := <-k.ended:
		for begin := time.Now(); err == nil && k.pipe.spool.held.Load() != 0; time.Sleep(time.Millisecond) { // the line that was written last is given back after that
			must.Need(k.t, time.Since(begin) <= time.Minute, "%d bytes are still held", k.pipe.spool.held.Load())
		}
		return err
	case <-time.After(time.Minute):
		k.t.Fatal("the pipe does not end")
		return nil
	}
}

// records lists the calls as METHOD request -> response (end), in the order in which they began.
func (k *talk) records() (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.seen {
		text := fmt.Sprintf("%s %s %s", s.call.Path, s.call.Method, s.request)
		if s.outcome == nil {
			text += " (no end)"
		} else if s.outcome.Response != nil {
			text += " -> " + string(s.response)
		}
		if s.outcome != nil && s.outcome.Ended != Complete {
			text += " (" + string(s.outcome.Ended) + ")"
		}
		list = append(list, text)
	}
	return list
}

func both(t *testing.T, do func(t *testing.T, mode Mode)) {
	for _, mode := range []Mode{Closed, Open} {
		t.Run(string(mode), func(t *testing.T) { do(t, mode) })
	}
}

const (
	ask1 = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"}}}`
	ask2 = `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"b"}}`
	got1 = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	got2 = `{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"m"}}`
)

// TestPipe: answers may come in any order, and both sides may ask with the same id.
func TestPipe(t *testing.T) {
	both(t, func(t *testing.T, mode Mode) {
		k := newTalk(t, func(o *Options) { o.Mode = mode })
		const sample = `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`
		k.client.say(ask1, ask2+"\r")
		k.server.hear(ask1)
		k.server.hear(ask2 + "\r")
		k.server.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`, sample, got2)
		k.client.hear(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`)
		k.client.hear(sample)
		k.client.hear(got2)
		k.client.say(`{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}`)
		k.server.hear(`{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}`)
		k.server.say(got1)
		k.client.hear(got1)
		must.Do(t, k.end())
		want := []string{"/client tools/call " + ask1 + " -> " + got1, "/client tools/call " + ask2 + "\r -> " + got2, `/server sampling/createMessage ` + sample + ` -> {"jsonrpc":"2.0","id":1,"result":{"model":"m"}}`}
		got := k.records()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s", strings.Join(got, "\n"))
		}
		for _, s := range k.seen {
			must.Hold(t, s.ends == 1 && s.call.Origin == "stdio:test" && len(s.call.Upstream) == 64 && s.call.Chain == "c", "%+v", s.call)
			if want := s.call.Method == "tools/call" && string(s.request) == ask1; want != slices.Equal(s.outcome.Counted, []string{"1 notifications of its progress, which are only counted"}) {
				t.Errorf("%s: counted %q", s.request, s.outcome.Counted)
			}
		}
	})
}

// TestPipeRecordsEveryOtherLine: what is no request and no answer is a record of its own, before it passes.
func TestPipeRecordsEveryOtherLine(t *testing.T) {
	both(t, func(t *testing.T, mode Mode) {
		k := newTalk(t, func(o *Options) { o.Mode = mode })
		lines := []string{"listening on 8080", "\xff\x00", "\r", `{"jsonrpc":"2.0","id":9,"result":{}}`, `{"id":1,"result":{}} {}`, `{"id":1,"id":2,"result":{}}`, `{"id":1,"method":"x","result":1}`,
			`{"id":null,"error":{"code":-32700}}`, `{"method":"notifications/tools/list_changed"}`, `[]`, `17`, `{"id":"` + strings.Repeat("x", 200) + `","result":{}}`, `{"id":[1],"result":{}}`,
			`{"id":1,"method":"` + strings.Repeat("y", 200) + `"}`, `{"id":1,"result":{}`}
		for i, line := range lines {
			k.server.say(line)
			k.client.hear(line)
			must.Need(t, mode != Closed || len(k.records()) == i+1, "%q passed without a record", line)
		}
		k.server.say("", `{"id":5,"method":"ping"}`, `{"method":"notifications/message","params":{}}`)
		k.client.hear("")
		k.client.hear(`{"id":5,"method":"ping"}`)
		k.client.hear(`{"method":"notifications/message","params":{}}`)
		k.client.say(`{"id":5,"result":{}}`, `{"method":"notifications/cancelled","params":{"requestId":1}}`)
		k.server.hear(`{"id":5,"result":{}}`)
		k.server.hear(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		must.Do(t, k.end())
		if got := k.records(); len(got) != len(lines)+1 || !slices.Contains(got, `/client notifications/cancelled {"method":"notifications/cancelled","params":{"requestId":1}}`) {
			t.Errorf("%s", strings.Join(got, "\n"))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		want := []string{"1 messages notifications/message since the record before, which are only counted", "1 messages ping since the record before, which are only counted"}
		last := k.seen[len(k.seen)-1].outcome.Counted
		must.Hold(t, slices.Equal(last, want), "counted %q", last)
	})
}

// TestPipeForgetsPings: sessions last for days, and each ping has an id of its own.
func TestPipeForgetsPings(t *testing.T) {
	k := newTalk(t, nil)
	for id := range 10 {
		ping, pong := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
		k.client.say(ping)
		k.server.hear(ping)
		k.server.say(pong)
		k.client.hear(pong)
	}
	must.Do(t, k.end())
	n := len(k.pipe.client.pings)
	must.Hold(t, n == 0, "%d pings are remembered that were answered", n)
}

// TestPipeTakesNoWrongAnswer: an answer that can be read as that of another call is not taken for it, and ids that are too long to be told apart are not told apart.
func TestPipeTakesNoWrongAnswer(t *testing.T) {
	k := newTalk(t, nil)
	long := strings.Repeat("x", 200)
	odd := []string{`{"id":2,"id":1,"result":{}}`, `{"id":1,"result":{},"error":{}}`, `{"id":"` + long + `b","result":{}}`}
	asks := []string{ask1, `{"id":"` + long + `a","method":"tools/call"}`, `{"id":"` + long + `b","method":"tools/call"}`}
	k.client.say(asks...)
	for _, line := range asks {
		k.server.hear(line)
	}
	k.server.say(append(odd, got1)...)
	for _, line := range append(odd, got1) {
		k.client.hear(line)
	}
	must.Do(t, k.end())
	got := k.records()
	if !slices.Contains(got, "/client tools/call "+ask1+" -> "+got1) || len(got) != len(asks)+len(odd) || strings.Count(strings.Join(got, ""), "->") != 1 {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestPipeBatch: a batch is one call, however its answers come.
func TestPipeBatch(t *testing.T) {
	both(t, func(t *testing.T, mode Mode) {
		for _, answers := range [][]string{{"[" + got2 + "," + got1 + "]"}, {got2, got1}} {
			k := newTalk(t, func(o *Options) { o.Mode = mode })
			batch := "[" + ask1 + ` , {"method":"notifications/x"},` + ask2 + "]"
			k.client.say(batch)
			k.server.hear(batch)
			k.server.say(answers...)
			for _, a := range answers {
				k.client.hear(a)
			}
			must.Do(t, k.end())
			want := strings.Join(answers, "\n")
			if len(answers) > 1 {
				want += "\n"
			}
			if got := k.records(); len(got) != 1 || got[0] != "/client batch "+batch+" -> "+want {
				t.Errorf("%s", strings.Join(got, "\n"))
			}
		}
	})
}

// TestPipeHoldsAnswers: in closed mode no request passes whose beginning is not recorded, and no answer of a call that is not.
func TestPipeHoldsAnswers(t *testing.T) {
	k := newTalk(t, nil)
	may := make(chan error)
	k.onBegin(func(*Call) error { return <-may })
	k.onEnd(func(*Call, *Outcome) error { return <-may })
	heard := make(chan string, 10)
	var hearing sync.WaitGroup
	for _, s := range []*tongue{k.server, k.client} {
		hearing.Go(func() {
			for {
				line, err := s.out.ReadString('\n')
				if err != nil {
					heard <- err.Error()
					return
				}
				heard <- strings.TrimSpace(line)
			}
		})
	}
	nothing := func() {
		t.Helper()
		select {
		case line := <-heard:
			t.Fatalf("%q passed", line)
		case <-time.After(50 * time.Millisecond):
		}
	}
	k.client.say(ask1)
	nothing()
	may <- nil
	line := <-heard
	must.Need(t, line == ask1, "%v", line)
	k.server.say(got1)
	nothing()
	may <- errors.New("the disk is full")
	err := k.over()
	must.Hold(t, errors.Is(err, ErrNotRecorded) && strings.Contains(err.Error(), "the disk is full"), "Run: %v", err)
	hearing.Wait()
	for range 2 {
		must.Equal(t, <-heard, "EOF")
	}
}

// TestPipeRefusesRequests: a call that cannot be recorded does not reach the server.
func TestPipeRefusesRequests(t *testing.T) {
	k := newTalk(t, nil)
	k.onBegin(func(*Call) error { return errors.New("the journal is gone") })
	k.client.say(ask1)
	text, err := k.server.out.ReadString('\n')
	must.Hold(t, text == "" && err == io.EOF, "the server hears %q, %v", text, err)
	must.Want(t, k.over(), ErrNotRecorded)
}

// TestPipeOpen: open mode passes what cannot be recorded, and tells of it.
func TestPipeOpen(t *testing.T) {
	k := newTalk(t, func(o *Options) { o.Mode = Open })
	n := 0
	k.onBegin(func(*Call) error {
		if n++; n == 1 {
			return errors.New("the journal is gone")
		}
		return nil
	})
	k.onEnd(func(*Call, *Outcome) error { return errors.New("the disk is full") })
	for range 2 {
		k.client.say(ask1)
		k.server.hear(ask1)
		k.server.say(got1)
		k.client.hear(got1)
	}
	err := k.end()
	must.Hold(t, err == nil && len(k.missed) == 2, "%v, missed %v", err, k.missed)
}

// TestPipeEnds: each call that has no answer is recorded, and by whom it has none.
func TestPipeEnds(t *testing.T) {
	both(t, func(t *testing.T, mode Mode) {
		k := newTalk(t, func(o *Options) { o.Mode = mode })
		k.client.say(ask1)
		k.server.hear(ask1)
		_ = k.server.in.Close()
		must.Do(t, k.over())
		got := k.records()
		must.Hold(t, len(got) == 1 && strings.HasSuffix(got[0], "("+string(UpstreamCut)+")"), "the server ends: %q", got)

		k = newTalk(t, func(o *Options) { o.Mode = mode })
		k.client.say(ask1, ask2)
		k.server.hear(ask1)
		k.server.hear(ask2)
		_ = k.client.in.Close()
		k.server.say(got2) // what is under way is answered
		k.client.hear(got2)
		must.Do(t, k.end())
		if got := strings.Join(k.records(), "\n") + "\n"; !strings.Contains(got, ask2+" -> "+got2+"\n") || !strings.Contains(got, ask1+" ("+string(ClientGone)+")\n") {
			t.Errorf("the client ends: %q", got)
		}
	})
}

// TestPipeLargeBodies: a line of 64 MiB passes as it is, and is never allocated as a whole. In open mode one for which there is no room passes, too.
func TestPipeLargeBodies(t *testing.T) {
	const size = 64 << 20
	for name, test := range map[string]struct {
		change func(*Options)
		missed int
		pieces uint64 // bytes that pass in pieces of their own
	}{
		"closed":            {nil, 0, 0},
		"open":              {func(o *Options) { o.Mode = Open }, 0, 0},
		"open without room": {func(o *Options) { o.Mode, o.Cap = Open, 1<<20 }, 2, 2 * size},
	} {
		t.Run(name, func(t *testing.T) {
			witness := newRecorder()
			o := Options{Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)}
			if test.change != nil {
				test.change(&o)
			}
			p := must.Get(New(ignoring{witness}, o))(t).Pipe(PipeOptions{Origin: "stdio:test"})
			line := func(begin string) io.Reader {
				return io.MultiReader(strings.NewReader(begin), io.LimitReader(repeat([]byte("0123456789abcdef")), size), strings.NewReader("\"}}\n"))
			}
			server, toServer := io.Pipe()
			counting := new(counter)
			var heard int64
			got := make(chan struct{})
			go func() {
				defer close(got)
				heard, _ = io.Copy(io.Discard, server)
			}()
			var err error
			n := allocated(func() {
				err = p.Run(line(`{"id":1,"method":"tools/call","params":{"x":"`), counting, &after{got, line(`{"id":1,"result":{"x":"`)}, toServer)
			})
			if err != nil || counting.n != size+int64(len(`{"id":1,"result":{"x":""}}`))+1 || heard != size+int64(len(`{"id":1,"method":"tools/call","params":{"x":""}}`))+1 {
				t.Errorf("%v: the client got %d bytes, the server %d", err, counting.n, heard)
			}
			must.Hold(t, n <= test.pieces+size/4, "%d KiB were allocated", n>>10)
			must.Equal(t, len(witness.missed), test.missed)
		})
	}
}

// A counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// FuzzPipe: what either side says reaches the other as it is, whatever it is.
func FuzzPipe(f *testing.F) {
	f.Add([]byte(ask1+"\n"+ask2+"\r\n"), []byte(got1+"\n\n["+got2+"]\nnot JSON\n{"), true)
	f.Add([]byte(`[{"id":1,"method":"a"},{"id":1,"method":"b"}]`+"\n"), []byte(`{"id":1,"result":1}`+"\n"+`{"id":1.0,"error":null,"result":1}`), false)
	f.Add([]byte("{\"id\":\"\\u0031\",\"method\":\"ping\"}\n"), []byte("{\"id\":\"1\",\"result\":{}}\n"), false)
	folder := filepath.Join(f.TempDir(), "spool")
	f.Fuzz(func(t *testing.T, client, server []byte, open bool) {
		o := Options{Folder: folder, FingerprintKey: make([]byte, 32), MemoryPerBody: 40}
		if open {
			o.Mode = Open
		}
		w := newRecorder()
		p := must.Get(New(w, o))(t).Pipe(PipeOptions{Origin: "stdio:test"})
		toServer, fromClient := io.Pipe()
		var heard bytes.Buffer
		got := make(chan struct{})
		go func() {
			defer close(got)
			_, _ = heard.ReadFrom(toServer)
		}()
		var said bytes.Buffer
		// The server speaks once it has heard all.
		err := p.Run(bytes.NewReader(client), &said, &after{got, bytes.NewReader(server)}, fromClient)
		must.Need(t, err == nil && bytes.Equal(heard.Bytes(), client) && bytes.Equal(said.Bytes(), server),
			"%v\n%q became %q\n%q became %q", err, client, &heard, server, &said)
		held := p.spool.held.Load()
		must.Need(t, held == 0 && p.spool.inMemory.Load() == 0, "%d bytes are still held", held)
		for _, s := range w.seen {
			must.Need(t, s.ends == 1, "%q has %d ends", s.request, s.ends)
		}
	})
}

// after reads once something has happened.
type after struct {
	done <-chan struct{}
	from io.Reader
}

func (a *after) Read(b []byte) (int, error) {
	<-a.done
	return a.from.Read(b)
}

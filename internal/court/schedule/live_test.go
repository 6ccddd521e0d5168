package schedule_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// a house is a server that conducts trials and serves their events.
type house struct {
	*jurattest.House
	*schedule.Scheduler
	URL     string
	stop    func()        // stops conducting trials
	left    chan struct{} // gets an element whenever a watcher's connection ends
	closing chan struct{} // gets an element whenever a close frame is sent
}

// patiently is added to the address by watchers that read and answer without delay.
const patiently = "&patiently=1"

// A listener reports close frames.
type listener struct {
	net.Listener
	closing chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return framed{c.(*net.TCPConn), l.closing}, nil
}

type framed struct {
	*net.TCPConn
	closing chan struct{}
}

func (c framed) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	if len(p) > 0 && p[0] == 0x88 { // RFC 6455, section 5.2: the last frame of a message, with the opcode of a close
		c.closing <- struct{}{}
	}
	return n, err
}

func openHall(t testing.TB, how schedule.Delivery, sit func(*subject.Case, int64) trial.Config) *house {
	t.Helper()
	h := &house{House: jurattest.New(t), left: make(chan struct{}, 100), closing: make(chan struct{}, 100)}
	h.Scheduler = must.Get(schedule.Open(t.Context(), schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Sit: sit, Now: h.Now, Grace: time.Millisecond}))(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		watch := func(ctx context.Context) (*schedule.Watching, error) {
			return h.Watch(ctx, r.URL.Path[len("/ws/"):], after)
		}
		defer func() { h.left <- struct{}{} }()
		how := how
		if r.URL.Query().Has("patiently") {
			how.Patience = time.Minute
		}
		do := how.WebSocket
		if strings.HasPrefix(r.URL.Path, "/ev/") {
			do = how.Events
		}
		if err := do(w, r, watch); errors.Is(err, schedule.ErrAhead) || errors.Is(err, schedule.ErrHandshake) {
			http.Error(w, err.Error(), http.StatusTeapot) // no other answer has been written
		} else if err != nil {
			t.Error(err)
		}
	}))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) { // so that little is buffered for a watcher who does not read
		if s == http.StateNew && how.Patience > 0 {
			must.Want(t, c.(framed).SetWriteBuffer(4<<10), nil)
		}
	}
	server.Listener = listener{server.Listener, h.closing}
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	h.URL, h.stop = server.URL, func() { cancel(); <-done }
	t.Cleanup(func() { h.stop(); server.Close() })
	return h
}

// scripted seats jurattest's panel.
func scripted(*subject.Case, int64) trial.Config {
	jurors, judge := jurattest.Panel()
	return trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
}

func submitTo(t testing.TB, d *schedule.Scheduler) string {
	t.Helper()
	return must.Get(d.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)}))(t)
}

func dial(t testing.TB, h *house, id string, after int64, more ...string) *websocket.Conn {
	t.Helper()
	c, answer, err := websocket.Dial(t.Context(), fmt.Sprintf("%s/ws/%s?after=%d%s", h.URL, id, after, strings.Join(more, "")), nil)
	must.Need(t, err == nil, "%v %v", err, answer)
	t.Cleanup(func() { c.CloseNow() })
	c.SetReadLimit(-1)
	return c
}

// read reads messages until the connection ends.
func read(t testing.TB, c *websocket.Conn) (docs [][]byte, ended error) {
	for {
		kind, doc, err := c.Read(t.Context())
		if err != nil {
			return docs, err
		}
		must.Equal(t, kind, websocket.MessageText)
		docs = append(docs, doc)
	}
}

func seqOf(t testing.TB, doc []byte) int64 {
	t.Helper()
	var head trial.EventHead
	must.Do(t, json.Unmarshal(doc, &head))
	return head.Seq
}

// wantEvents requires each event once, in order, from one number to another.
func wantEvents(t testing.TB, docs [][]byte, from, to int64) {
	t.Helper()
	for i, doc := range docs {
		seq := seqOf(t, doc)
		must.Need(t, seq == from+int64(i), "event %d comes at place %d, after %d", seq, i, from-1)
	}
	must.Hold(t, int64(len(docs)) == to-from+1, "%d events, want %d to %d", len(docs), from, to)
}

// TestSourceFrames compares the frames with the examples of the source document, field by field. No field may be
// missing. The only further ones are type, seq and at.
func TestSourceFrames(t *testing.T) {
	h := openHall(t, schedule.Delivery{}, scripted)
	docs, ended := read(t, dial(t, h, submitTo(t, h.Scheduler), 0))
	must.Equal(t, websocket.CloseStatus(ended), websocket.StatusNormalClosure)
	seen := map[string]int{}
	for _, doc := range docs {
		var head struct {
			Type string `json:"type"`
		}
		must.Do(t, json.Unmarshal(doc, &head))
		seen[head.Type]++
		if check := sourceSchemas[head.Type]; check != nil {
			err := check(doc)
			must.Hold(t, err == nil, "%s: %v: %s", head.Type, err, doc)
		}
	}
	for _, name := range []string{"submission_received", "phase_started", "juror_evaluated", "consensus_checked", "round_started",
		"juror_statement", "round_completed", "judge_spoke", "final_judgment", "trial_closed"} {
		must.Hold(t, seen[name] != 0, "there was no %s", name)
	}
	// The comparison itself must refuse an additional member, a missing one, and one of another type.
	good := `{"type":"round_started","seq":1,"at":"2026-01-01T00:00:00Z","submissionId":"x","round":1,"speakerOrder":["a"]}`
	for name, bad := range map[string]string{"": good, "more": strings.Replace(good, "{", `{"more":1,`, 1),
		"fewer": strings.Replace(good, `"round":1,`, "", 1), "other": strings.Replace(good, `"round":1`, `"round":"1"`, 1),
		"null": strings.Replace(good, `["a"]`, "null", 1)} {
		err := sourceSchemas["round_started"]([]byte(bad))
		must.Hold(t, (err == nil) == (name == ""), "%q: %v", name, err)
	}
}

// sourceSchemas are the examples of the source document, section 5, as types. A pointer means that the member is
// required.
var sourceSchemas = map[string]func([]byte) error{
	"round_started": func(doc []byte) error {
		return strictly(doc, &struct {
			head
			SubmissionID *string   `json:"submissionId"`
			Round        *int      `json:"round"`
			SpeakerOrder *[]string `json:"speakerOrder"`
		}{})
	},
	"juror_statement": func(doc []byte) error {
		return strictly(doc, &struct {
			head
			SubmissionID    *string `json:"submissionId"`
			Round           *int    `json:"round"`
			Juror           *string `json:"juror"`
			Statement       *string `json:"statement"`
			PositionChanged *bool   `json:"positionChanged"`
			NewVerdict      *string `json:"newVerdict"`
			NewScore        *int    `json:"newScore"`
		}{})
	},
	"round_completed": func(doc []byte) error {
		return strictly(doc, &struct {
			head
			SubmissionID     *string  `json:"submissionId"`
			Round            *int     `json:"round"`
			ConsensusStatus  *string  `json:"consensusStatus"`
			AgreementLevel   *float64 `json:"agreementLevel"`
			MajorityPosition *string  `json:"majorityPosition"`
		}{})
	},
}

type head struct {
	Type *string    `json:"type"`
	Seq  *int64     `json:"seq"`
	At   *time.Time `json:"at"`
}

// strictly reads a document into a struct of pointers. None may stay nil, and no other member may be present.
func strictly(doc []byte, into any) error {
	if err := json.Unmarshal(doc, into, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	again, err := json.Marshal(into)
	if err != nil {
		return err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(again, &members); err != nil {
		return err
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

// TestReconnect: a watcher who is disconnected after each event and comes back with its number gets each event once,
// over WebSocket and server-sent events.
func TestReconnect(t *testing.T) {
	h := openHall(t, schedule.Delivery{}, scripted)
	id := submitTo(t, h.Scheduler)
	for after := int64(0); after < 15; after++ {
		c := dial(t, h, id, after)
		_, doc, err := c.Read(t.Context())
		must.Need(t, err == nil && seqOf(t, doc) == after+1, "after %d: %v, %s", after, err, doc)
		c.CloseNow()
	}
	for after := range int64(16) {
		docs, ended := read(t, dial(t, h, id, after))
		wantEvents(t, docs, after+1, 15)
		must.Equal(t, websocket.CloseStatus(ended), websocket.StatusNormalClosure)
		_, answer := events(t, h, id, after)
		wantEvents(t, answer, after+1, 15)
	}
}

// events reads the server-sent events of a trial to the end.
func events(t testing.TB, h *house, id string, after int64) (status int, docs [][]byte) {
	t.Helper()
	answer := must.Get(http.Get(fmt.Sprintf("%s/ev/%s?after=%d", h.URL, id, after)))(t)
	defer answer.Body.Close()
	fields := map[string]string{}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		fields[name] = value
		if lines.Text() != "" || fields["data"] == "" {
			continue
		}
		doc := []byte(fields["data"])
		must.Hold(t, fmt.Sprint(seqOf(t, doc)) == fields["id"] && strings.Contains(fields["data"], `"type":"`+fields["event"]+`"`), "%v", fields)
		docs, fields = append(docs, doc), map[string]string{}
	}
	must.Do(t, lines.Err())
	return answer.StatusCode, docs
}

// TestEvents: events come live, and a watcher who has all of them gets 204.
func TestEvents(t *testing.T) {
	h := openHall(t, schedule.Delivery{Heartbeat: time.Millisecond}, scripted)
	id := submitTo(t, h.Scheduler)
	status, docs := events(t, h, id, 0)
	wantEvents(t, docs, 1, 15)
	must.Equal(t, status, http.StatusOK)
	status, docs = events(t, h, id, 15)
	must.Hold(t, status == http.StatusNoContent && len(docs) == 0, "%v %v", status, docs)
	status, _ = events(t, h, id, 16)
	must.Hold(t, status == http.StatusTeapot, "%v", status)
}

// TestRefusedBeforeTheUpgrade: WebSocket returns an error before the upgrade, so that the caller can answer the request.
func TestRefusedBeforeTheUpgrade(t *testing.T) {
	h := openHall(t, schedule.Delivery{}, scripted)
	id := submitTo(t, h.Scheduler)
	_, answer, err := websocket.Dial(t.Context(), h.URL+"/ws/"+id+"?after=99", nil)
	must.Hold(t, err != nil && answer.StatusCode == http.StatusTeapot, "%v, %v", err, answer)
	plain := must.Get(http.Get(h.URL + "/ws/" + id + "?after=0"))(t)
	defer plain.Body.Close()
	if doc, err := io.ReadAll(plain.Body); err != nil || plain.StatusCode != http.StatusTeapot || !strings.HasPrefix(string(doc), schedule.ErrHandshake.Error()) {
		t.Errorf("%v, %d, %s", err, plain.StatusCode, doc)
	}
}

// TestSlowReader: a watcher who stops reading is disconnected with the reason. The trial does not wait for it, and the
// watcher can resume.
func TestSlowReader(t *testing.T) {
	h := openHall(t, schedule.Delivery{Window: 1, Patience: 100 * time.Millisecond}, scripted)
	id := submitTo(t, h.Scheduler)
	c := dial(t, h, id, 0)
	whole, _ := read(t, dial(t, h, id, 0, patiently)) // the trial is over, and c has read nothing
	wantEvents(t, whole, 1, 15)
	<-h.closing
	<-h.closing // of both
	docs, ended := read(t, c)
	must.Hold(t, websocket.CloseStatus(ended) == schedule.TooSlow && strings.Contains(ended.Error(), "?after="), "ended with %v", ended)
	must.Equal(t, len(docs), 1)
	rest, _ := read(t, dial(t, h, id, int64(len(docs)), patiently))
	wantEvents(t, append(docs, rest...), 1, 15)
}

// TestHugeEvent: a watcher who does not read is also disconnected if events are larger than all buffers on the way.
func TestHugeEvent(t *testing.T) {
	long := func(*subject.Case, int64) trial.Config {
		c := scripted(nil, 0)
		for i := range c.Jurors {
			o := jurattest.Opine(jury.SafePass, 90)
			o.Rationale = strings.Repeat("a", 60_000)
			c.Jurors[i] = &jurattest.Juror{Opinion: o}
		}
		return c
	}
	for _, way := range []string{"ws", "ev"} {
		h := openHall(t, schedule.Delivery{Patience: 100 * time.Millisecond, Window: 10 << 20}, long)
		id := submitTo(t, h.Scheduler)
		client := &http.Client{Transport: &http.Transport{DialContext: narrow}}
		awaitOver(t, h, id)
		if way == "ws" {
			c, _, err := websocket.Dial(t.Context(), h.URL+"/ws/"+id+"?after=0", &websocket.DialOptions{HTTPClient: client})
			must.Do(t, err)
			c.SetReadLimit(-1)
			<-h.left
			docs, ended := read(t, c)
			must.Hold(t, websocket.CloseStatus(ended) == -1 && len(docs) != 15, "was not cut off: %d events, then %v", len(docs), ended)
			continue
		}
		answer := must.Get(client.Get(h.URL + "/ev/" + id + "?after=0"))(t)
		<-h.left
		doc, err := io.ReadAll(answer.Body)
		must.Hold(t, err != nil && !strings.Contains(string(doc), "trial_closed"), "was not cut off: %d bytes, then %v", len(doc), err)
		answer.Body.Close()
	}
}

// narrow connects with small buffers in the operating system.
func narrow(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetReadBuffer(4 << 10)
}

func awaitOver(t *testing.T, h *house, id string) {
	t.Helper()
	for {
		e := must.Get(h.Entry(t.Context(), id))(t)
		if e.State == api.Over {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// slowly seats jurattest's panel, with this delay before each answer.
func slowly(delay time.Duration) func(*subject.Case, int64) trial.Config {
	return func(*subject.Case, int64) trial.Config {
		c := scripted(nil, 0)
		for i, j := range c.Jurors {
			c.Jurors[i] = &jurattest.Juror{Opinion: j.(*jurattest.Juror).Opinion, Delay: delay}
		}
		return c
	}
}

// held seats jurattest's panel. Its jurors wait until the channel is closed.
func held(until <-chan struct{}) func(*subject.Case, int64) trial.Config {
	return func(*subject.Case, int64) trial.Config {
		c := scripted(nil, 0)
		for i, j := range c.Jurors {
			c.Jurors[i] = heldJuror{j, until}
		}
		return c
	}
}

type heldJuror struct {
	jury.Juror
	until <-chan struct{}
}

func (j heldJuror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	select {
	case <-j.until:
	case <-ctx.Done():
	}
	return j.Juror.Answer(ctx, b)
}

// TestSilentReader: while nothing happens, a watcher who does not answer pings is disconnected, and one who does is not.
func TestSilentReader(t *testing.T) {
	until := make(chan struct{})
	h := openHall(t, schedule.Delivery{Heartbeat: 20 * time.Millisecond, Patience: 100 * time.Millisecond}, held(until))
	id := submitTo(t, h.Scheduler)
	silent, attentive := dial(t, h, id, 0), dial(t, h, id, 0, patiently)
	go func() {
		<-h.closing
		close(until)
	}()
	_, ended := read(t, attentive)
	must.Equal(t, websocket.CloseStatus(ended), websocket.StatusNormalClosure)
	docs, ended := read(t, silent)
	must.Hold(t, websocket.CloseStatus(ended) == schedule.TooSlow && len(docs) <= 2, "%d events, then %v", len(docs), ended)
}

// TestServerEnds: when the server ends, each watcher is told to come back.
func TestServerEnds(t *testing.T) {
	h := openHall(t, schedule.Delivery{}, held(nil))
	id := submitTo(t, h.Scheduler)
	c := dial(t, h, id, 0)
	answer := must.Get(http.Get(h.URL + "/ev/" + id + "?after=0"))(t)
	defer answer.Body.Close()
	_, _, err := c.Read(t.Context())
	must.Do(t, err)
	h.stop()
	_, ended := read(t, c)
	must.Hold(t, websocket.CloseStatus(ended) == websocket.StatusGoingAway, "%v", ended)
	doc, err := io.ReadAll(answer.Body)
	must.Hold(t, err == nil && !strings.Contains(string(doc), "trial_closed"), "%v: %s", err, doc)
}

// TestSpeaker: a watcher who sends a message is disconnected.
func TestSpeaker(t *testing.T) {
	h := openHall(t, schedule.Delivery{}, held(nil))
	c := dial(t, h, submitTo(t, h.Scheduler), 0)
	must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
	_, ended := read(t, c)
	must.Hold(t, websocket.CloseStatus(ended) == websocket.StatusPolicyViolation, "%v", ended)
}

package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"jurat/api"
	"jurat/client"
)

// telling is a server that sends the events of a trial in parts, one part for each connection. It records the requests.
func telling(t *testing.T, pieces ...string) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query().Get("after"))
		piece := pieces[min(len(*asked), len(pieces))-1]
		if piece == "over" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, "retry: 1000\n\n:\n\n"+piece)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func event(seq int, kind string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"type\":%q,\"seq\":%d,\"at\":\"2026-01-01T00:00:00Z\",\"submissionId\":\"trial-x\",\"more\":1}\n\n", seq, kind, kind, seq)
}

func heard(t *testing.T, c *client.Client, after int64) (seqs []int64, err error) {
	t.Helper()
	for e, err := range c.Watch(t.Context(), "trial-x", after) {
		if err != nil {
			return seqs, err
		}
		if e.SubmissionID != "trial-x" || !strings.Contains(string(e.JSON), `"more":1`) {
			t.Errorf("%+v", e)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs, nil
}

// TestWatchGoesOn: Watch delivers each event once, however often the connection ends.
func TestWatchGoesOn(t *testing.T) {
	url, asked := telling(t, event(3, "a")+event(4, "b"), event(5, "c"), "", event(6, "d")[:20], event(6, "d")+event(7, api.LastEvent))
	c := connect(t, client.Config{URL: url})
	seqs, err := heard(t, c, 2)
	if err != nil || !slices.Equal(seqs, []int64{3, 4, 5, 6, 7}) || !slices.Equal(*asked, []string{"2", "4", "5", "5", "5"}) {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, _ = telling(t, "over")
	if seqs, err := heard(t, connect(t, client.Config{URL: url}), 7); err != nil || len(seqs) > 0 {
		t.Errorf("%v, %v", err, seqs)
	}
}

// TestWatchGivesUp: Watch returns an error after several failed attempts, at once if the server refuses, and at once if
// an event is missing.
func TestWatchGivesUp(t *testing.T) {
	url, asked := telling(t, event(1, "a"), "")
	if seqs, err := heard(t, connect(t, client.Config{URL: url, Attempts: 2}), 0); err == nil || len(seqs) != 1 || len(*asked) != 3 {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, asked = telling(t, event(1, "a")+event(3, "b"))
	if seqs, err := heard(t, connect(t, client.Config{URL: url}), 0); err == nil || len(seqs) != 1 || len(*asked) != 1 {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, count := answering(t, http.StatusForbidden, api.ProblemMediaType, `{"type":"urn:jurat:problem:forbidden","title":"x","status":403,"detail":"x"}`)
	if _, err := heard(t, connect(t, client.Config{URL: url}), 0); !errors.Is(err, api.ErrForbidden) || count.Load() != 1 {
		t.Errorf("%v, asked %d times", err, count.Load())
	}
	url, _ = telling(t, event(1, strings.Repeat("a", 1000)))
	if _, err := heard(t, connect(t, client.Config{URL: url, MaxAnswer: 500}), 0); err == nil || !strings.Contains(err.Error(), "500 bytes") {
		t.Error(err)
	}
	url, asked = telling(t, event(1, "a")+event(2, "b"))
	for range connect(t, client.Config{URL: url}).Watch(t.Context(), "trial-x", 0) {
		break
	}
	if len(*asked) != 1 {
		t.Errorf("the requests were %v, want none after the caller stopped", *asked)
	}
}

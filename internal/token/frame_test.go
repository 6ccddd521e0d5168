package token

import (
	"bufio"
	"io"
	"slices"
	"testing"
	"time"
)

// TestDeadlines: the rest of a frame has a deadline, the wait for a frame has none, and frames that came together cost no deadline.
func TestDeadlines(t *testing.T) {
	one := "\x00\x00\x00\x01a"
	for name, tt := range map[string]struct {
		reads []string
		want  []bool // the deadlines that are set, true, and taken away, false
	}{
		"two at once":          {[]string{one + one}, nil},
		"half a length":        {[]string{one[:2], one[2:]}, []bool{true, false}},
		"half a frame":         {[]string{one + one[:4], one[4:]}, []bool{true, false}},
		"one, then half a one": {[]string{one, one[:4], one[4:], one}, []bool{true, false}},
	} {
		in, out := io.Pipe()
		go func() {
			for _, text := range tt.reads {
				out.Write([]byte(text)) // ends when it has been read
			}
			out.Close()
		}()
		var got []bool
		r := &reader{in: bufio.NewReader(in), most: 1, patience: time.Hour, reserve: func(int) error { return nil }, release: func(int) {},
			deadline: func(at time.Time) error { got = append(got, !at.IsZero()); return nil }}
		var err error
		for err == nil {
			_, err = r.next()
		}
		if err != io.EOF || !slices.Equal(got, tt.want) {
			t.Errorf("%s: deadlines %v, want %v; %v", name, got, tt.want, err)
		}
	}
}

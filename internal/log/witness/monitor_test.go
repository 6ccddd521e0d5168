package witness_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/client/tiles"
	"jurat/evidence/operator"
	"jurat/internal/log/witness"
	"jurat/internal/test/must"
	"jurat/verify/trust"
)

// equal is a log of any size with equal entries. It computes the files that it serves.
type equal struct {
	signer note.Signer
	levels [64]tlog.Hash // of complete subtrees, by their height
	size   int64
}

var sameEntry = []byte("the same")

func (l *equal) ReadHashes(indexes []int64) (hashes []tlog.Hash, err error) {
	for _, index := range indexes {
		level, _ := tlog.SplitStoredHashIndex(index)
		hashes = append(hashes, l.levels[level])
	}
	return hashes, nil
}

func (l *equal) checkpoint(t testing.TB) string {
	t.Helper()
	root := must.Get(tlog.TreeHash(l.size, l))(t)
	return must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: l.signer.Name(), Size: l.size, Root: root}, l.signer))(t)
}

func (l *equal) handler(t testing.TB) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/checkpoint" {
			fmt.Fprint(out, l.checkpoint(t))
			return
		}
		level, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/tile/"), "/")
		tile, err := tiles.Parse(level, rest)
		if err != nil || !tiles.In(tile, l.size) {
			http.NotFound(out, r)
			return
		}
		for range tile.W {
			if tile.L == tiles.EntriesLevel {
				_, _ = out.Write(append([]byte{0, byte(len(sameEntry))}, sameEntry...))
			} else {
				_, _ = out.Write(l.levels[tile.L*8][:])
			}
		}
	}
}

// TestSignedWhatNoLogHas: an impossible checkpoint with a signature of the log's key is reported as the log's. One
// without it is reported as another's.
func TestSignedWhatNoLogHas(t *testing.T) {
	key := func(seed byte) (note.Signer, string) {
		private, public, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{seed}, 64)), "example.com/log")
		must.Do(t, err)
		signer := must.Get(note.NewSigner(private))(t)
		return signer, public
	}
	signer, public := key(1)
	stranger, _ := key(2)
	trusted := must.Get(trust.Parse(fmt.Appendf(nil, `{"format":"jurat/trust/v1","logs":[%q]}`, public)))(t)
	const root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for _, tt := range []struct {
		text string
		by   note.Signer
		want witness.Kind
	}{
		{"example.com/log\n9007199254740992\n" + root + "\n", signer, witness.Impossible},
		{"example.com/log\n9223372036854775807\n" + root + "\n", signer, witness.Impossible},
		{"example.com/log\n9007199254740992\n" + root + "\n", stranger, witness.Foreign},
		{"example.com/log\n-1\n" + root + "\n", signer, witness.Impossible},
		{"example.com/other\n1\n" + root + "\n", signer, witness.Impossible},
	} {
		signed := must.Get(note.Sign(&note.Note{Text: tt.text}, tt.by))(t)
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(signed) }))
		defer server.Close()
		client, err := tiles.New(tiles.Config{URL: server.URL})
		must.Do(t, err)
		_, err = witness.See(t.Context(), witness.MonitorConfig{Log: client, Trust: trusted})
		var alarm *witness.Alarm
		if !errors.As(err, &alarm) || alarm.Kind != tt.want || alarm.New != string(signed) || alarm.Kind.Meaning() == "" || alarm.SeenAlone() == "" ||
			strings.Contains(alarm.Reason, "not what the log signed") || strings.Contains(alarm.ToOthers(), "has not signed") != (tt.want == witness.Foreign) {
			t.Errorf("%q: %+v, %v", tt.text, alarm, err)
		}
	}
}

// TestFlood: a log that signs a trillion equal entries does not block the monitor. The look ends at once with an alarm,
// and uses little memory.
func TestFlood(t *testing.T) {
	private, public, err := note.GenerateKey(bytes.NewReader(make([]byte, 64)), "example.com/log")
	must.Do(t, err)
	l := &equal{size: 300}
	l.signer, err = note.NewSigner(private)
	must.Do(t, err)
	l.levels[0] = tlog.RecordHash(sameEntry)
	for i := range l.levels[1:] {
		l.levels[i+1] = tlog.NodeHash(l.levels[i], l.levels[i])
	}
	trusted := must.Get(trust.Parse(fmt.Appendf(nil, `{"format":"jurat/trust/v1","logs":[%q]}`, public)))(t)
	server := httptest.NewServer(l.handler(t))
	defer server.Close()
	client := must.Get(tiles.New(tiles.Config{URL: server.URL}))(t)
	look := func(last string, most int64) (*witness.Look, error) {
		return witness.See(t.Context(), witness.MonitorConfig{Log: client, Trust: trusted, Last: last, Most: most})
	}
	first, err := look("", 0)
	must.Need(t, err == nil && first.Read == 300, "%+v, %v", first, err)
	for _, size := range []int64{300 + witness.DefaultMost + 1, 1 << 40, 1<<40 + 12345, operator.MaxEntries} {
		l.size = size
		for _, last := range []string{"", first.Checkpoint} {
			found, err := look(last, 0)
			var alarm *witness.Alarm
			if !errors.As(err, &alarm) || alarm.Kind != witness.Flood || alarm.Old != last || alarm.New != l.checkpoint(t) ||
				alarm.Kind.Meaning() == "" || alarm.ToOthers() == "" || alarm.SeenAlone() == "" {
				t.Errorf("%d: %+v, %v", size, found, err)
			}
		}
	}
	l.size = 1000 // within the limit: only the new entries count
	found, err := look(first.Checkpoint, 700)
	must.Hold(t, err == nil && found.Before == 300, "%+v, %v", found, err)
	must.Refuse(t, "", "a look beyond its limit gave no alarm")(look(first.Checkpoint, 699))
}

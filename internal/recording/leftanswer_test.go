package recording

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// cutOff returns a text in an encoding, whose end is missing.
func cutOff(t *testing.T, encoding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch encoding {
	case "gzip":
		w := gzip.NewWriter(&out)
		if _, err = w.Write([]byte(text)); err == nil {
			err = w.Flush()
		}
	case "zstd":
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(&out); err == nil {
			if _, err = w.Write([]byte(text)); err == nil {
				err = w.Flush()
			}
		}
	default:
		out.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestAnswerThatACrashLeftIsMasked: of an answer of an agent, what was on disk is sealed without the secrets for notifications, however it is encoded. What
// cannot be read for that is not kept.
func TestAnswerThatACrashLeftIsMasked(t *testing.T) {
	const said, half = `{"jsonrpc":"2.0","result":{"id":"task 1","pushNotificationConfig":{"token":"s3cr3t","authentication":{"credentials":"hunt`, `er2"},"url":"https://a.exa`
	kept := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "s3cr3t", "******"), "hunter2", "*******")
	}
	for name, tt := range map[string]struct {
		suffix string // of the file, as the relay names it
		file   []byte
		want   string // of the body; "": nothing
	}{
		"plain":                              {"", []byte(said + half), kept(said + half)},
		"plain, cut in a secret":             {"", []byte(said), strings.ReplaceAll(kept(said), "hunt", "****")},
		"plain, cut in a character":          {"", []byte(said + half + "\xc3"), kept(said + half + "\xc3")},
		"gzip":                               {".gzip", cutOff(t, "gzip", said+half), kept(said + half)},
		"zstd":                               {".zstd", cutOff(t, "zstd", said+half), kept(said + half)},
		"gzip, of which nothing can be read": {".gzip", []byte(said), ""},
		"an encoding that nobody knows":      {".unknown", cutOff(t, "gzip", said), ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder, log := t.TempDir(), &shelf{}
			d := newDesk(t, folder, log, func(c *Config) { c.InTheRecord = true })
			if _, err := d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.A2A, ID: "c1", Began: time.Now(), Method: "POST", Path: "/", Origin: "https://api.example", Vantage: evidence.Proxy,
				Header: http.Header{"A2a-Version": {"1.0"}}, Request: d.recorderBody(t, "hello")}); err != nil {
				t.Fatal(err)
			}
			d.crash()
			must.Do(t, os.WriteFile(filepath.Join(d.recorder.Spool(), "c1.response"+tt.suffix), tt.file, 0o600))
			newDesk(t, folder, log, nil).end()
			lost := log.acts(evidence.ObservedMessage)
			if len(lost) != 1 || lost[0].Observed.Ended != evidence.LostInCrash || lost[0].Observed.Response == nil || lost[0].Observed.Response.SHA256 != evidence.DigestOf(tt.file) {
				t.Fatalf("%d records", len(lost))
			}
			var body []byte
			if raw := lost[0].ResponseBody; raw != nil {
				pieces, err := evidence.ParseBody(raw)
				if err != nil || len(pieces) != 1 {
					t.Fatalf("%s: %v", raw, err)
				}
				body = pieces[0].Own
			}
			if string(body) != tt.want {
				t.Errorf("%q\nwant %q", body, tt.want)
			}
			missing := strings.Join(lost[0].Observed.Missing, "\n")
			if !strings.Contains(missing, "after the part that was on disk") || tt.want == "" && !strings.Contains(missing, unmasked) || tt.want != "" && !strings.Contains(missing, "were overwritten") {
				t.Errorf("missing: %s", missing)
			}
		})
	}
}

package installation_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/installation"
)

// wantNothingLeft searches every file of a data folder for a text.
func wantNothingLeft(t *testing.T, c installation.Config, after, text string) {
	t.Helper()
	for path, content := range disktest.Files(t, c.Dir) {
		if n := bytes.Count(content, []byte(text)); n > 0 {
			t.Errorf("after %s, %s has the text %d times", after, path, n)
		}
	}
}

// TestNoTextIsLeftInTheDatabase: a deleted or erased text is in no file of the data folder, whether the
// installation is open or closed.
func TestNoTextIsLeftInTheDatabase(t *testing.T) {
	const text = "the parcel of Anna"
	then := time.Now().AddDate(-1, 0, 0)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	past := created(t, c)
	var first *evidence.Record
	for n := range 256 { // of many lengths, so that some fill pages and others leave space in them
		p := note()
		p.Timestamp = then.UTC().Format(time.RFC3339)
		p.Prompt = jsontext.Value(`"` + strings.Repeat(text, 1+n*n%700) + `"`)
		if r := sealApart(t, past, p); first == nil {
			first = r
		}
	}
	there := marks(t, c)
	succeeds(t, past.Close())
	c.Now = nil
	i := open(t, c)
	sealMany(t, i, 1)
	secretly := sealApart(t, i, note(), "/prompt", "/metadata/user")
	must(i.Eraser.Erase(t.Context(), order(secretly, "/prompt", "/metadata/user")))
	wantNothingLeft(t, c, "erase", secret)
	if done, err := i.Expirer.Expire(t.Context(), expireOrder()); err != nil || done.Records == 0 {
		t.Fatal(done, err)
	}
	wantExpired(t, i, first)
	wantNothingLeft(t, c, "expire", text)
	wantNoMarks(t, c.Dir, there)
	succeeds(t, i.Close())
	wantNothingLeft(t, c, "closing", text)
	wantNothingLeft(t, c, "closing", secret)
	wantNoMarks(t, c.Dir, there)
}

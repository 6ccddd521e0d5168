package evidence

import (
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestDigestHasOneForm(t *testing.T) {
	d := DigestOf(nil)
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if d.String() != empty {
		t.Errorf("the digest of nothing is %s", d)
	}
	if again, err := ParseDigest(empty); err != nil || again != d {
		t.Errorf("parsed to %s, %v", again, err)
	}
	digits := hex.EncodeToString(d[:])
	for _, text := range []string{"", digits, "sha256:", "SHA256:" + digits, strings.ToUpper(empty), "sha256:" + strings.ToUpper(digits),
		empty + "0", empty[:len(empty)-1], " " + empty, empty + "\n", "sha512:" + digits, "sha256:0x" + digits[2:], "sha256-" + digits,
		"sha256:" + strings.Repeat("g", 64), "sha256:" + strings.Repeat("١", 32)} {
		if _, err := ParseDigest(text); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

func TestRecordID(t *testing.T) {
	id, err := NewRecordID(testTime, new(counter))
	if err != nil || id != "019c14d6-13a0-7607-8809-0a0b0c0d0e0f" {
		t.Errorf("id is %s, %v", id, err)
	}
	for i, last := 0, ""; i < 1000; i++ {
		id, err := NewRecordID(testTime.Add(time.Duration(i)*time.Millisecond), nil)
		if err != nil || CheckRecordID(id) != nil || id <= last {
			t.Fatalf("%s after %s: %v", id, last, err)
		}
		last = id
	}
	for _, never := range []time.Time{{}, time.UnixMilli(-1), time.UnixMilli(1 << 48)} {
		if id, err := NewRecordID(never, nil); err == nil {
			t.Errorf("%s: id is %s", never, id)
		}
	}
	if _, err := NewRecordID(testTime, strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("with a source that ends too early: %v", err)
	}
}

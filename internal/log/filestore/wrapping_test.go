package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

func generated(t *testing.T) (*Keys, []byte) {
	t.Helper()
	text := Generate()
	keys := must.Get(Parse(text))(t)
	return keys, text
}

func TestWrapAndUnwrap(t *testing.T) {
	keys, _ := generated(t)
	for _, secret := range []string{"", "a key", strings.Repeat("x", 10000)} {
		id, wrapped := keys.Wrap("keys/a.key", []byte(secret))
		must.Hold(t, secret == "" || !bytes.Contains(wrapped, []byte(secret)), "it can be read")
		got, err := keys.Unwrap("keys/a.key", id, wrapped)
		must.Hold(t, err == nil && string(got) == secret, "%q, %v", got, err)
		_, again := keys.Wrap("keys/a.key", []byte(secret))
		must.Hold(t, !bytes.Equal(again, wrapped), "twice the same")
	}
}

// TestUnwrapRefuses checks that every byte, the name and the key matter.
func TestUnwrapRefuses(t *testing.T) {
	keys, _ := generated(t)
	other, _ := generated(t)
	id, wrapped := keys.Wrap("a", []byte("secret"))
	for n := range wrapped {
		changed := bytes.Clone(wrapped)
		changed[n] ^= 1
		got, err := keys.Unwrap("a", id, changed)
		must.Hold(t, errors.Is(err, ErrDamaged), "byte %d changed: %q, %v", n, got, err)
		got, err = keys.Unwrap("a", id, wrapped[:n])
		must.Hold(t, errors.Is(err, ErrDamaged), "%d bytes: %q, %v", n, got, err)
	}
	got, err := keys.Unwrap("b", id, wrapped)
	must.Hold(t, errors.Is(err, ErrDamaged), "under another name: %q, %v", got, err)
	got, err = other.Unwrap("a", id, wrapped)
	must.Hold(t, errors.Is(err, ErrOtherKey) && strings.Contains(err.Error(), string(id)), "with another key: %q, %v", got, err)
	got, err = other.Unwrap("a", other.IDs()[0], wrapped)
	must.Hold(t, errors.Is(err, ErrDamaged), "with another key of the same id: %q, %v", got, err)
}

// TestChangeOfKeys checks that the first key wraps, and that files wrapped under other keys can still be read.
func TestChangeOfKeys(t *testing.T) {
	old, oldText := generated(t)
	_, newText := generated(t)
	id, wrapped := old.Wrap("a", []byte("secret"))
	both := must.Get(Parse(append(append(newText, "\n\n# the old one\n"...), oldText...)))(t)
	got, err := both.Unwrap("a", id, wrapped)
	must.Hold(t, err == nil && string(got) == "secret", "%q, %v", got, err)
	now, _ := both.Wrap("a", nil)
	must.Hold(t, now != id && now == both.IDs()[0], "wraps under %s, but the first key is %s", now, both.IDs()[0])
}

func TestParseRefuses(t *testing.T) {
	_, text := generated(t)
	lines := strings.Split(string(text), "\n")
	secret := lines[1]
	for name, text := range map[string]string{"nothing": "", "comments": "# x\n", "half": secret[:20], "longer": secret + "AAAA", "twice": secret + "\n" + secret,
		"on one line": secret + " " + secret, "no base64": "!" + secret[1:], "loose base64": secret[:42] + "B="} {
		if keys, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, keys)
		} else if strings.Contains(err.Error(), secret[:16]) {
			t.Errorf("%s: the error contains the key: %v", name, err)
		}
	}
	var many strings.Builder
	for range maxKeys + 1 {
		many.Write(Generate())
	}
	must.Refuse(t, "", "any number of keys")(Parse([]byte(many.String())))
}

// TestKeysAreNotPrinted checks that printing Keys shows only their IDs.
func TestKeysAreNotPrinted(t *testing.T) {
	keys, _ := generated(t)
	must.Equal(t, fmt.Sprintf("%v %s", keys, keys), string(keys.IDs()[0])+" "+string(keys.IDs()[0]))
}

// FuzzParse checks that parsed keys unwrap what they wrap.
func FuzzParse(f *testing.F) {
	f.Add([]byte("# c\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"))
	f.Add([]byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\r\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := Parse(text)
		if err != nil {
			return
		}
		id, wrapped := keys.Wrap("n", text)
		got, err := keys.Unwrap("n", id, wrapped)
		must.Hold(t, err == nil && bytes.Equal(got, text), "%v", err)
	})
}

package main

import (
	"strings"
	"testing"
)

func TestURI(t *testing.T) {
	for text, want := range map[string]string{
		"pkcs11:token=house;object=mia":              "pkcs11:token=house;object=mia;type=private",
		"pkcs11:object=mia;token=a%20b;type=private": "pkcs11:token=a%20b;object=mia;type=private",
		"pkcs11:id=%01%ff;serial=1;model=m":          "pkcs11:model=m;serial=1;id=%01%FF;type=private",
		"pkcs11:manufacturer=x%2Fy":                  "pkcs11:manufacturer=x%2Fy;type=private",
		"pkcs11:object=a%3Bb":                        "pkcs11:object=a%3Bb;type=private",
	} {
		u, err := parseURI(text)
		if err != nil || u.String() != want {
			t.Errorf("%s is %s, want %s: %v", text, u, want, err)
		}
		if again, err := parseURI(u.String()); err != nil || again != u {
			t.Errorf("%s is read as %v, %v", u, again, err)
		}
	}
	for _, text := range []string{"", "house", "pkcs11:", "pkcs11:token", "pkcs11:token=", "pkcs11:token=a;token=b", "pkcs11:token=a?pin-value=1", "pkcs11:token=a&b",
		"pkcs11:token=%zz", "pkcs11:pin-value=1", "pkcs11:type=public;object=a", "https://pkcs11:object=a", "pkcs11:object=" + strings.Repeat("a", 1100)} {
		if u, err := parseURI(text); err == nil {
			t.Errorf("%q is read as %s", text, u)
		}
	}
}

// TestRead: a line that is no request ends the input with an error, and nothing of it is done.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{"hello\n": "", `{"id":-1}` + "\n": "", `{"id":1,"digest":"?"}` + "\n": "", strings.Repeat("x", maxLine+1): "",
		`{"id":7,"do":"key","uri":"pkcs11:object=a"}` + "\n": `{"id":7}` + "\n"} {
		var out strings.Builder
		err := serve(func(r request) answer { return answer{ID: r.ID} }, strings.NewReader(text), &out, 1)
		if out.String() != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %q, %v", text, out.String(), err)
		}
	}
}

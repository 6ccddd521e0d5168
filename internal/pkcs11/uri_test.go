package pkcs11_test

import (
	"strings"
	"testing"

	"jurat/internal/pkcs11"
)

func TestURI(t *testing.T) {
	for text, want := range map[string]string{
		"pkcs11:token=house;object=mia":                     "pkcs11:token=house;object=mia;type=private",
		"pkcs11:object=mia;type=private;token=my%20house":   "pkcs11:token=my%20house;object=mia;type=private",
		"pkcs11:id=%01%fF;serial=0a;model=m;manufacturer=x": "pkcs11:manufacturer=x;model=m;serial=0a;id=%01%FF;type=private",
		"pkcs11:object=a+b":                                 "pkcs11:object=a%2Bb;type=private",
	} {
		u, err := pkcs11.ParseURI(text)
		if err != nil || u.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, u, err, want)
		}
	}
}

var badURIs = []string{"", "pkcs11:", "PKCS11:object=a", "pkcs11:object", "pkcs11:object=", "pkcs11:object=a;object=b", "pkcs11:object=a;",
	"pkcs11:object=%zz", "pkcs11:object=a?pin-value=1", "pkcs11:object=a?module-path=/x.so", "pkcs11:object=a;pin-source=file", "pkcs11:slot-id=1",
	"pkcs11:object=a;type=public", "pkcs11:object=" + strings.Repeat("a", 1024)}

func TestBadURI(t *testing.T) {
	for _, text := range badURIs {
		if u, err := pkcs11.ParseURI(text); err == nil {
			t.Errorf("%q is read as %s", text, u)
		}
	}
}

func FuzzURI(f *testing.F) {
	for _, text := range append(badURIs, "pkcs11:token=house;object=m%20ia;id=%01%ff;type=private") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := pkcs11.ParseURI(text)
		if err != nil {
			return
		}
		again, err := pkcs11.ParseURI(u.String())
		if err != nil && len(u.String()) <= 1024 || err == nil && again.String() != u.String() {
			t.Errorf("%q is written as %q, which is read as %q, %v", text, u, again, err)
		}
	})
}

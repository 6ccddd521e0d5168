package pkcs11

import (
	"fmt"
	"net/url"
	"strings"
)

// A URI names a token or a key on it, as RFC 7512 writes it: pkcs11:token=LABEL;object=LABEL;id=%01;type=private. An empty
// field is not in the URI, and fits everything.
type URI struct {
	Token, Manufacturer, Model, Serial string
	Object                             string
	ID                                 []byte
}

const scheme = "pkcs11:"

// ParseURI reads a URI. It refuses attributes that name a PIN, and all that it does not know.
func ParseURI(text string) (URI, error) {
	u, err := parseURI(text)
	if err != nil {
		return URI{}, fmt.Errorf("reading key URI: %w", err)
	}
	return u, nil
}

func parseURI(text string) (URI, error) {
	var u URI
	path, ok := strings.CutPrefix(text, scheme)
	if !ok || len(text) > 1024 {
		return u, fmt.Errorf("want pkcs11:token=...;object=..., at most 1024 bytes (RFC 7512)")
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(path, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || seen[name] {
			return u, fmt.Errorf("%q is not an attribute NAME=VALUE, or is there twice", part)
		}
		seen[name] = true
		plain, err := url.PathUnescape(value)
		if err != nil || strings.ContainsAny(value, "?&") {
			return u, fmt.Errorf("the value of %q is not percent-encoded, or a query follows it: a PIN and a library are not part of a key's name", name)
		}
		if err := u.set(name, plain); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (u *URI) set(name, value string) error {
	fields := map[string]*string{"token": &u.Token, "manufacturer": &u.Manufacturer, "model": &u.Model, "serial": &u.Serial, "object": &u.Object}
	switch field := fields[name]; {
	case value == "":
		return fmt.Errorf("%q is empty", name)
	case field != nil:
		*field = value
	case name == "id":
		u.ID = []byte(value)
	case name == "type" && value == "private":
	default:
		return fmt.Errorf("%s=%s is not supported; known are token, manufacturer, model, serial, object, id and type=private", name, value)
	}
	return nil
}

// String writes the URI in one form: attributes in a fixed order, and all bytes of an id percent-encoded.
func (u URI) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+escape(value))
		}
	}
	add("token", u.Token)
	add("manufacturer", u.Manufacturer)
	add("model", u.Model)
	add("serial", u.Serial)
	add("object", u.Object)
	if len(u.ID) > 0 {
		parts = append(parts, "id="+escapeAll(u.ID))
	}
	return scheme + strings.Join(append(parts, "type=private"), ";")
}

// escape leaves the characters that RFC 3986 calls unreserved.
func escape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

func escapeAll(value []byte) string {
	var b strings.Builder
	for _, c := range value {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// fits says whether the URI is about this token.
func (u URI) fits(info TokenInfo) bool {
	fit := func(want, is string) bool { return want == "" || want == is }
	return fit(u.Token, info.Label) && fit(u.Manufacturer, info.Manufacturer) && fit(u.Model, info.Model) && fit(u.Serial, info.Serial)
}

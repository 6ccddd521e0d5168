package main

import (
	"fmt"
	"net/url"
	"strings"
)

// A uri names a token or a key on it, as RFC 7512 writes it: pkcs11:token=LABEL;object=LABEL;id=%01;type=private. An empty field fits everything.
type uri struct {
	token, manufacturer, model, serial string
	object, id                         string
}

const scheme = "pkcs11:"

// parseURI refuses attributes that name a PIN, and all that it does not know.
func parseURI(text string) (u uri, err error) {
	path, ok := strings.CutPrefix(text, scheme)
	if !ok || len(text) > 1024 {
		return u, fmt.Errorf("want pkcs11:token=...;object=..., at most 1024 bytes (RFC 7512)")
	}
	fields := map[string]*string{"token": &u.token, "manufacturer": &u.manufacturer, "model": &u.model, "serial": &u.serial, "object": &u.object, "id": &u.id, "type": new(string)}
	for part := range strings.SplitSeq(path, ";") {
		name, value, ok := strings.Cut(part, "=")
		field := fields[name]
		if !ok || field == nil || *field != "" {
			return u, fmt.Errorf("%q is unknown or repeated: known are token, manufacturer, model, serial, object, id and type=private", part)
		}
		plain, err := url.PathUnescape(value)
		if err != nil || plain == "" || strings.ContainsAny(value, "?&") {
			return u, fmt.Errorf("the value of %q is empty or not percent-encoded, or a query follows it: a PIN and a library are not part of a key's name", name)
		}
		*field = plain
	}
	if kind := *fields["type"]; kind != "" && kind != "private" {
		return u, fmt.Errorf("type=%s: want type=private", kind)
	}
	return u, nil
}

// String writes the attributes in a fixed order, and all bytes of an id percent-encoded.
func (u uri) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
		}
	}
	add("token", u.token)
	add("manufacturer", u.manufacturer)
	add("model", u.model)
	add("serial", u.serial)
	add("object", u.object)
	if u.id != "" {
		id := ""
		for _, c := range []byte(u.id) {
			id += fmt.Sprintf("%%%02X", c)
		}
		parts = append(parts, "id="+id)
	}
	return scheme + strings.Join(append(parts, "type=private"), ";")
}

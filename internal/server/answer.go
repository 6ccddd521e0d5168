package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
)

// marshaler is a file of the format: a record, a bundle, a trust file.
type marshaler interface{ Marshal() ([]byte, error) }

// writeFile answers with a file and its ETag.
func writeFile(w http.ResponseWriter, r *http.Request, status int, file marshaler) error {
	doc, err := file.Marshal()
	if err != nil {
		return err
	}
	return writeTagged(w, r, status, "application/json", doc)
}

// writeTagged answers with bytes and their ETag, or with 304 if the caller has them already.
func writeTagged(w http.ResponseWriter, r *http.Request, status int, media string, doc []byte) error {
	if tagged(w, r, strings.TrimPrefix(evidence.DigestOf(doc).String(), "sha256:")) {
		return nil
	}
	return writeDoc(w, r, status, media, doc)
}

// tagged sets the ETag of an answer. If the caller has the content already, it answers 304 and reports true.
func tagged(w http.ResponseWriter, r *http.Request, digest string) bool {
	tag := `"` + digest + `"`
	h := w.Header()
	h.Set("ETag", tag)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache") // may be stored, but must be revalidated each time
	}
	if changes(r) || !matches(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// matches compares tags as RFC 9110, section 13.1.2, defines.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}

// writeJSON answers with a value of package api.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, value any) error {
	doc, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %T: %w", value, err)
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	return writeDoc(w, r, status, "application/json", append(doc, '\n'))
}

func writeDoc(w http.ResponseWriter, r *http.Request, status int, media string, doc []byte) error {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", fmt.Sprint(len(doc)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	memoryAccountOf(r.Context()).Keep(2 * int64(len(doc))) // until the reader has it, however long that takes
	_, _ = w.Write(doc)                                    // an error means that the caller has disconnected
	return nil
}

// readJSON decodes a body strictly into a value of package api.
func readJSON[T any](r *http.Request) (*T, error) {
	doc, err := readBody(r, "application/json")
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(doc, value, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, evidence.Steady(err))
	}
	return value, nil
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool { return changing(r.Method) }

// changing reports whether requests with this method may change something.
func changing(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

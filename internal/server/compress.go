package server

import (
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressed compresses what browsers show, for clients that take gzip: pages, their styles and scripts. Streams, records
// and case files go as they are.
//
// A page holds its session's form key beside text of others, so that the length of a compressed page could tell of the key
// to whoever chooses the text and makes the browser load the page again and again (BREACH). Other sites cannot do that:
// the cookie of the session is SameSite=Strict. The jitter is there in case that fails.
func compressed(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false), gzhttp.RandomJitter(64, 0, false),
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml"}))
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return wrap(h), nil
}

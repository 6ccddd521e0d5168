package server

import "net/http"

// sharedHeaders lists headers that pages of other sites may read beside those that they may always read.
const sharedHeaders = "ETag, Jurat-Cut"

// share lets pages of other sites read an answer (CORS), if the route is Shared and any stranger gets the same answer. It
// gives no credentials: a request that carries any gets no permission, so the answer cannot depend on who is signed in.
func (s *Server) share(route *Route, h http.Header, r *http.Request, c *Caller) {
	if !route.Shared || !s.published() {
		return
	}
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") == "" || !c.Stranger() || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", sharedHeaders)
}

// unshare takes the permission back from a refusal: what a stranger may not read has none.
func unshare(h http.Header) {
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
}

// published reports whether others than this machine reach the server. If only this machine does, other sites' pages in
// its browsers would reach what nobody else can, so they may read nothing.
func (s *Server) published() bool {
	return s.config.Secure && (!s.config.Local || len(s.config.Origins) > 0)
}

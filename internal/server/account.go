package server

import (
	"mime"
	"net"
	"net/http"

	"jurat/internal/limits"
)

// account opens the account of a request that was let in.
func (s *Server) account(route *Route, r *http.Request, c *Caller) (*http.Request, *limits.Account, error) {
	ctx, a := s.budget.Open(r.Context(), limitedAs(c, r))
	r = r.WithContext(ctx)
	most := s.config.MaxBody
	if route.MaxBody > 0 {
		most = route.MaxBody
	}
	var need int64
	if route.Kind != API || c.cookie { // elsewhere no body is read as a form, whatever it is said to be: curl calls all of them forms
		need = 4 * formSize(r, most)
	}
	if route.Heavy {
		need += limits.HeavyRequest
	}
	return r, a, a.Take(r.Context(), need)
}

// formSize is how large a form is at most. Forms are read before a handler is asked, and held whole.
func formSize(r *http.Request, most int64) int64 {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !changes(r) || media != "application/x-www-form-urlencoded" && media != "multipart/form-data" {
		return 0
	}
	if r.ContentLength >= 0 {
		return min(r.ContentLength, most)
	}
	return most
}

// limitedAs says as whom a caller is limited: by token, wherever it comes from, and without one by where it comes from. Sessions
// count as the token by which they were opened: whoever opens many may not ask more often.
func limitedAs(c *Caller, r *http.Request) string {
	switch {
	case c.Stranger():
		return address(r)
	case !c.grant.Under.IsZero():
		return c.grant.Under.String()
	}
	return c.grant.Token.String()
}

// address is where a request comes from. Of IPv6 it is the network that one subscriber has.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}

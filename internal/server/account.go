package server

import (
	"mime"
	"net"
	"net/http"
)

// account opens the memory account of an admitted request.
func (s *Server) account(route *Route, r *http.Request, c *Caller) (*http.Request, *memoryAccount, error) {
	ctx, a := s.budget.Open(r.Context(), limitedAs(c, r))
	r = r.WithContext(ctx)
	most := s.config.MaxBody
	if route.MaxBody > 0 {
		most = route.MaxBody
	}
	var need int64
	if route.Kind != API || c.cookie { // no other body is parsed as a form, whatever its Content-Type: curl labels all bodies as forms
		need = 4 * formSize(r, most)
	}
	if route.Heavy {
		need += heavyRequest
	}
	return r, a, a.Take(r.Context(), need)
}

// formSize is the size limit of a form. The server reads forms completely before it calls a handler.
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

// limitedAs returns the key under which a caller's rate is limited: the token, or the address for a caller without
// one. A session counts as the token that opened it, so many sessions do not raise the limit.
func limitedAs(c *Caller, r *http.Request) string {
	switch {
	case c.Stranger():
		return address(r)
	case !c.grant.Under.IsZero():
		return c.grant.Under.String()
	}
	return c.grant.Token.String()
}

// address returns the caller's address. For IPv6 it is the network that one subscriber has.
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

package server

import (
	"context"
	"time"

	"jurat/internal/access"
)

// linkTime is how long a sign-in link is valid.
const linkTime = time.Hour

// A link allows one sign-in, for the person who can see the terminal of a server. Every server of the installation
// accepts it, because the person cannot choose which server a browser reaches.
type link struct {
	Name  string        `json:"name"`
	Roles []access.Role `json:"roles"`
}

// takeLink uses up a link.
func (s *Server) takeLink(ctx context.Context, secret string) (l link, err error) {
	return l, s.config.Installation.TakeTicket(ctx, secret, &l)
}

package server

import (
	"context"
	"time"

	"jurat/internal/access"
)

// linkTime is how long a sign-in link is good.
const linkTime = time.Hour

// A link is for one sign-in, and for whoever has the terminal in which a server runs. Any server of the installation takes it: which
// one a browser reaches is not for whoever has the link to say.
type link struct {
	Name  string        `json:"name"`
	Roles []access.Role `json:"roles"`
}

// takeLink uses a link up.
func (s *Server) takeLink(ctx context.Context, secret string) (l link, err error) {
	return l, s.config.Installation.TakeTicket(ctx, secret, &l)
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/schedule"
)

func (s *Server) streamRoutes() []Route {
	after := []Parameter{{"after", "The seq of the last event that you have: later events are sent. Without it, all events are sent."}}
	return []Route{
		{Method: "GET", Pattern: "/ws/submissions/{id}/judge", Kind: Stream, Who: Readers, Handle: s.judgeSocket,
			Doc: Doc{Summary: "What happens in a trial, over WebSocket: an event in each text message.", Status: http.StatusSwitchingProtocols, Query: after}},
		{Method: "GET", Pattern: "/v1/submissions/{id}/events", Kind: Stream, Who: Readers, Handle: s.judgeEvents,
			Doc: Doc{Summary: "What happens in a trial, as server-sent events; 204 if no more events will come.", Media: schedule.EventStream, Query: after,
				Header: []Parameter{{"Last-Event-ID", "The same as after; it overrides after."}}}},
	}
}

func (s *Server) judgeSocket(w http.ResponseWriter, r *http.Request, c *Caller) error {
	if err := s.sameOrigin(r); err != nil {
		return err
	}
	return s.stream(w, r, c, r.URL.Query().Get("after"), s.live.WebSocket)
}

func (s *Server) judgeEvents(w http.ResponseWriter, r *http.Request, c *Caller) error {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	return s.stream(w, r, c, after, s.live.Events)
}

// stream sends a trial's events to a caller who may read the trial.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, c *Caller, after string,
	tell func(http.ResponseWriter, *http.Request, schedule.Watch) error) error {
	id := r.PathValue("id")
	if err := s.mayReadTrial(r.Context(), c, id); err != nil {
		return err
	}
	seq, err := seqOf(after)
	if err != nil {
		return err
	}
	may, err := s.mayStill(r.Context(), c, id)
	if err != nil {
		return err
	}
	r, end := s.live.While(r, may)
	defer end()
	s.streaming.Add(1)
	defer s.streaming.Done()
	err = tell(w, r, func(ctx context.Context) (*schedule.Watching, error) { return s.scheduler.Watch(ctx, id, seq) })
	if errors.Is(err, schedule.ErrHandshake) {
		return fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	return ofScheduler(err)
}

// mayStill returns a check whether the caller may still read the trial: a token can end, and a trial can become
// private again.
func (s *Server) mayStill(ctx context.Context, c *Caller, id string) (func(context.Context) error, error) {
	own, err := s.acts.Submitted(ctx, c, id)
	if err != nil {
		return nil, err
	}
	own = own || acts.ReadsEverything(c)
	return func(ctx context.Context) error {
		if !c.Stranger() {
			if err := s.stillGranted(ctx, c); own || err != nil {
				return err
			}
		}
		public, err := s.access.Public(ctx, id)
		if err == nil && !public {
			return schedule.ErrBarred
		}
		return err
	}, nil
}

// stillGranted returns an error if the caller's token has ended.
func (s *Server) stillGranted(ctx context.Context, c *Caller) error {
	_, err := s.access.Who(ctx, c.token)
	if errors.Is(err, access.ErrExpired) || errors.Is(err, access.ErrRevoked) {
		return schedule.ErrBarred
	}
	return err
}

// sameOrigin refuses connections from pages of other sites. Browsers would send our cookies and let those pages read
// the answers. A client that is not a browser sends no origin.
func (s *Server) sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(s.config.Origins, origin) {
		return nil
	}
	if from, err := url.Parse(origin); err == nil && from.Host != "" && strings.EqualFold(from.Host, r.Host) {
		return nil
	}
	return fmt.Errorf("%w: the page that connects is of %q", api.ErrCrossOrigin, origin)
}

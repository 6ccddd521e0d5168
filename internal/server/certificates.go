package server

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ca"
	"jurat/internal/certlog"
	"jurat/internal/server/wire"
)

// largestRequest is the size in bytes of a body with a certificate request: JSON writes each line feed of it in two bytes.
const largestRequest = 2 * ca.MaxRequest

func (s *Server) certificateRoutes() []Route {
	return []Route{{Method: "POST", Pattern: "/v1/certificates", Kind: API, MaxBody: largestRequest, Who: Who{Roles: []access.Role{access.Agent}}, Handle: s.postCertificate,
		Doc: Doc{Summary: "Issues a certificate for the key that signed the request, in the name of the token's agent; or gives the one that need not be renewed yet.",
			In: api.CertificateRequest{}, Out: api.Certificate{}, Status: http.StatusCreated}}}
}

func (s *Server) postCertificate(w http.ResponseWriter, r *http.Request, c *Caller) error {
	if s.config.Certificates == nil {
		return fmt.Errorf("%w: this server has no CA", api.ErrNotFound)
	}
	asked, err := wire.ReadJSON[api.CertificateRequest](r)
	if err != nil {
		return err
	}
	made, before, err := s.config.Certificates.Issue(r.Context(), c.Name(), []byte(asked.Request))
	var field *evidence.FieldError
	switch {
	case errors.Is(err, certlog.ErrNotYours):
		return fmt.Errorf("%w: %w", api.ErrForbidden, err)
	case errors.As(err, &field): // of the request: docs/format.md says nothing of it
		return fmt.Errorf("%w: field %s: %s", api.ErrInvalid, field.Field, field.Reason)
	case err != nil:
		return err
	}
	status := http.StatusCreated
	if before {
		status = http.StatusOK
	}
	return wire.WriteJSON(w, r, status, api.Certificate{Certificate: inPEM(made.Certificate.Raw), CA: inPEM(s.config.Certificates.CA.Certificate.Raw), Serial: made.Serial,
		NotAfter: made.Certificate.NotAfter.Format(time.RFC3339), RenewAt: made.DueAt().Format(time.RFC3339)})
}

func inPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

package server

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/incident"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/internal/openssl"
	"jurat/internal/pages"
	"jurat/verify"
	"jurat/verify/trust"
)

// maxVerified is the longest chain that is verified completely to show one of its records. In a longer chain only the
// record is verified.
const maxVerified = 2000

// recordPage shows one record. The path may also have its digest, as records name each other.
func (s *Server) recordPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	if strings.HasPrefix(r.PathValue("id"), "sha256:") {
		return s.byDigest(w, r, c)
	}
	record, err := s.provedRecord(r, c)
	if err != nil {
		return err
	}
	report, belongs, whole, err := s.reportOn(r.Context(), c, record)
	if err != nil {
		return err
	}
	page := pages.NewSealed(record, report, s.site())
	if len(whole) > 0 {
		page.Tried(whole[0])
	}
	if belongs != nil {
		page.Belongs(len(belongs.Indexes), belongs.Cut != nil)
	}
	return s.page(w, r, c, page)
}

// site is the address under which others reach the pages; "": the server knows none.
func (s *Server) site() incident.Site {
	if len(s.config.Origins) == 0 {
		return ""
	}
	return incident.Site(s.config.Origins[0])
}

// byDigest redirects to the page of the record with a digest. A stranger gets the same error for a missing and for a
// private record.
func (s *Server) byDigest(w http.ResponseWriter, r *http.Request, c *Caller) error {
	digest, err := evidence.ParseDigest(r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	record, err := s.config.Installation.Ledger.RecordByDigest(r.Context(), digest)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && c.Stranger():
		return acts.NotPublic()
	case errors.Is(err, ledger.ErrNotFound):
		return fmt.Errorf("%w: the log has no record with this digest", api.ErrNotFound)
	case err != nil:
		return err
	}
	if err := s.mayRead(r.Context(), c, record); err != nil {
		return err
	}
	return goTo(w, r, "records", record.Payload.RecordID)
}

// provedRecord returns a record with its proofs, and with the disclosures that the caller may see.
func (s *Server) provedRecord(r *http.Request, c *Caller) (*evidence.Record, error) {
	record, err := s.disclosed(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.config.Installation.Ledger.ProveOne(r.Context(), record)
}

// reportOn verifies a record by this installation's own trust. If the caller may read its chain, it verifies all that
// belongs to the record, because alone it proves less, and returns that as well; otherwise it returns nil for it. whole
// are the records that were verified together.
func (s *Server) reportOn(ctx context.Context, c *Caller, record *evidence.Record) (report *verify.Report, belongs *brief.Gathered, whole []*evidence.Record, err error) {
	trusted, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	g, err := s.gather(ctx, c, record.Payload.RecordID, s.config.Installation.Ledger.Briefs().GatherRecord)
	if err == nil && len(g.Indexes) <= maxVerified && (len(g.Indexes) > 1 || record.Payload.ChainID != "") {
		if whole, err = s.readableCase(ctx, c, g); err == nil {
			report, whole, err = s.verified(ctx, whole, trusted)
			return report, g, whole, err
		}
	}
	if err != nil && problemOf(err).Status >= http.StatusInternalServerError {
		return nil, nil, nil, err
	}
	return verify.Record(record, verify.Options{Trust: trusted}), g, nil, nil
}

// verified adds proofs to a chain and verifies it.
func (s *Server) verified(ctx context.Context, chain []*evidence.Record, trusted *trust.Trust) (*verify.Report, []*evidence.Record, error) {
	bundle, err := s.config.Installation.Ledger.Prove(ctx, chain...)
	if err != nil {
		return nil, nil, err
	}
	return verify.Bundle(bundle, verify.Options{Trust: trusted}), bundle.Records, nil
}

// chainPage shows the timeline of a chain or a record.
func (s *Server) chainPage(r *http.Request, c *Caller) (*pages.Chain, error) {
	id := r.PathValue("chain_id")
	page, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	g, err := s.gather(r.Context(), c, id, s.config.Installation.Ledger.Briefs().Gather)
	if err != nil {
		return nil, unnamed(err)
	}
	chain, err := s.readableCase(r.Context(), c, g)
	if err != nil {
		return nil, unnamed(err)
	}
	trusted, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return nil, err
	}
	report, records, err := s.verified(r.Context(), chain, trusted)
	if err != nil {
		return nil, err
	}
	shown := pages.NewChain(id, records, report, int(page))
	shown.Cut = g.Cut != nil
	return shown, nil
}

// recordBundle sends a record as a case file, with all that belongs to it. Without its chain the file would be
// refuted, because the log counts the missing records.
func (s *Server) recordBundle(w http.ResponseWriter, r *http.Request, c *Caller) error {
	record, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	g, err := s.gather(r.Context(), c, record.Payload.RecordID, s.config.Installation.Ledger.Briefs().GatherRecord)
	if err != nil {
		return err
	}
	return s.sendCase(w, r, c, g, record.Payload.RecordID+".jurat")
}

// recordOpenSSL sends what OpenSSL needs to check one record, as a zip file.
func (s *Server) recordOpenSSL(w http.ResponseWriter, r *http.Request, c *Caller) error {
	record, err := s.provedRecord(r, c)
	if err != nil {
		return err
	}
	trusted, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return err
	}
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	_, err = openssl.Write([]*evidence.Record{record}, trusted, func(name string, content []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate}
		header.SetMode(0o644)
		if name == openssl.Script {
			header.SetMode(0o755)
		}
		out, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = out.Write(content)
		return err
	})
	if errors.Is(err, openssl.ErrNoStamp) {
		return fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	attach(w, record.Payload.RecordID+".zip")
	return writeTagged(w, r, http.StatusOK, "application/zip", file.Bytes())
}

// attach makes browsers save an answer under a name, which must have no characters that need quoting.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

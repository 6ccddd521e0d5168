package eutrust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/internal/atomicfile"
	"jurat/trustlist"
)

// ListOfLists is where the EU publishes its list of the lists.
const ListOfLists = "https://ec.europa.eu/tools/lotl/eu-lotl.xml"

// A Fetcher brings lists into a folder. It asks only for what the list of the lists names, once that is verified, and for its pivots, where it
// comes from itself. It keeps what holds, each version in a file of its own.
type Fetcher struct {
	Journal     trustlist.Signers // required
	Folder      string            // required
	ListOfLists string            // empty: where the EU publishes it
	Territories []string          // only their lists; empty: all
	HTTP        *http.Client      // nil: one that waits a minute
	Note        func(text string) // required: what was kept, and what not
}

const (
	fetchTimeout = time.Minute
	maxRedirects = 5
)

// Fetch fetches. A list that cannot be had, or does not hold, keeps no other from being fetched, and is an error at the end.
func (f *Fetcher) Fetch(ctx context.Context) error {
	if f.ListOfLists == "" {
		f.ListOfLists = ListOfLists
	}
	lotl, err := f.listOfLists(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range lotl.Pointers {
		if p.Type != trustlist.NationalList || !strings.EqualFold(p.MIME, trustlist.XML) || len(f.Territories) > 0 && !slices.Contains(f.Territories, p.Territory) {
			continue
		}
		if err := f.national(ctx, p, lotl); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.Territory, err))
		}
	}
	return errors.Join(failed...)
}

// listOfLists fetches the list of the lists with the pivots that the folder lacks.
func (f *Fetcher) listOfLists(ctx context.Context) (*trustlist.List, error) {
	raw, list, err := f.get(ctx, f.ListOfLists)
	if err != nil {
		return nil, err
	}
	files, err := Read(os.DirFS(f.Folder))
	if err != nil {
		return nil, err
	}
	pivots := files.of(trustlist.ListOfLists, "")
	for number, location := range list.Pivots() {
		if slices.ContainsFunc(pivots, func(p *trustlist.Unverified) bool { return p.UnverifiedInfo().Sequence == number }) || !sameHost(location, f.ListOfLists) {
			continue
		}
		rawPivot, pivot, err := f.get(ctx, location)
		if err != nil {
			f.Note(fmt.Sprintf("pivot %d: %v", number, err)) // it is needed only if nothing newer has been published in the Official Journal
			continue
		}
		pivots = append(pivots, pivot)
		if err := f.keep(pivot, rawPivot); err != nil {
			return nil, err
		}
	}
	verified, err := trustlist.Chain(f.Journal, pivots, list)
	if err != nil {
		return nil, err
	}
	return verified, f.keep(list, raw)
}

func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host
}

func (f *Fetcher) national(ctx context.Context, p trustlist.Pointer, lotl *trustlist.List) error {
	raw, list, err := f.get(ctx, p.Location)
	if err != nil {
		return err
	}
	verified, err := list.Verify(lotl.Signers(p.Territory))
	if err != nil {
		return err
	}
	if verified.Territory != p.Territory {
		return fmt.Errorf("%s: it is the list of %s", p.Location, verified.Territory)
	}
	return f.keep(list, raw)
}

// keep writes a list to a file that is named by its digest: a version that is there stays.
func (f *Fetcher) keep(list *trustlist.Unverified, raw []byte) error {
	info := list.UnverifiedInfo()
	if !isTerritory(info.Territory) {
		return fmt.Errorf("%q is no territory", info.Territory)
	}
	name := fmt.Sprintf("%s-%d-%x.xml", info.Territory, info.Sequence, info.Digest[:6])
	err := atomicfile.Create(filepath.Join(f.Folder, name), raw, 0o644)
	if errors.Is(err, os.ErrExist) {
		f.Note(name + " is there already")
		return nil
	}
	if err == nil {
		f.Note(name + " was fetched")
	}
	return err
}

func isTerritory(text string) bool {
	return len(text) == 2 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// get asks for a list over https alone, also where it is sent elsewhere.
func (f *Fetcher) get(ctx context.Context, location string) ([]byte, *trustlist.Unverified, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	if request.URL.Scheme != "https" {
		return nil, nil, fmt.Errorf("%s: only https is asked; fetch it yourself, and put it into the folder", location)
	}
	response, err := f.client().Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s: status %s", location, response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, trustlist.MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", location, err)
	}
	list, err := trustlist.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", location, err)
	}
	return raw, list, nil
}

func (f *Fetcher) client() *http.Client {
	client := http.Client{Timeout: fetchTimeout}
	if f.HTTP != nil {
		client = *f.HTTP
	}
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if request.URL.Scheme != "https" || len(via) > maxRedirects {
			return fmt.Errorf("it sends to %s, which is not followed", request.URL)
		}
		return nil
	}
	return &client
}

package server

import (
	"fmt"
	"net/http"
	"strconv"

	"jurat/api"
)

// pageNumber reads the number of a page from the query, 1 if there is none. Its error is api.ErrMalformed.
func pageNumber(r *http.Request) (int, error) {
	text := r.URL.Query().Get("page")
	if text == "" {
		return 1, nil
	}
	page, err := strconv.Atoi(text)
	if err != nil || page < 1 {
		return 0, fmt.Errorf("%w: page: want a number from 1", api.ErrMalformed)
	}
	return page, nil
}

// seqOf reads the number of an event; "" is 0. Its error is api.ErrMalformed.
func seqOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 || strconv.FormatInt(seq, 10) != text {
		return 0, fmt.Errorf("%w: after: want the seq of an event, or 0 for all", api.ErrMalformed)
	}
	return seq, nil
}

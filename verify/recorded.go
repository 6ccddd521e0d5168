package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// sight takes what a recorder saw, in the order of the file.
func (c *check) sight(e examined) {
	against := c.sights.Take(e.look)
	c.exchange(e, against)
	c.found(e.record, against)
	if against != nil && against.Rule == "gap" {
		c.gaps = append(c.gaps, e.record)
	}
}

// noteSights says from where recorders saw. What they saw is proved only as far as their records are.
func (c *check) noteSights() {
	if !c.applies(Vantage) {
		return
	}
	var from []string
	for _, s := range c.sights.seen {
		from = append(from, s.InWords())
	}
	c.notes[Vantage] = "the bytes are those that are stated, and say what the records say; that a recorder saw everything is not shown"
	if len(from) > 0 {
		c.notes[Vantage] = strings.Join(from[:min(len(from), 8)], "; ") + ": " + c.notes[Vantage]
	}
	if kept := c.sights.elsewhere; len(kept) > 0 {
		c.notes[Vantage] += "; a part of what was asked was kept by the provider, and is in no record before it: " + strings.Join(kept[:min(len(kept), 8)], ", ")
	}
	if said := c.sights.leftOut; len(said) > 0 {
		c.notes[Vantage] += "; the bytes also say what their records leave out: " + strings.Join(said[:min(len(said), 8)], ", ")
	}
	c.restOn(Vantage, Content, Authentication)
}

// noteGaps doubts completeness where a recorder missed something: that is in no record.
func (c *check) noteGaps() {
	for _, r := range c.gaps {
		if c.applies(Completeness) {
			c.doubt(Completeness, "gap", r, "a recorder says that it missed acts: they are in no record")
		}
	}
}

// codings are the content codings that every reader removes alike: by RFC 9110, section 8.4.1, RFC 7932 and RFC 8878.
var codings = []string{"gzip", "deflate", "br", "zstd"}

// readDifferently says why the side that got a body need not have read in it what is read here; "": it must have.
func readDifferently(o *evidence.Observed) string {
	encoded := func(b *evidence.ObservedBody) bool { return b != nil && b.Encoding != "" && b.Bytes > 0 }
	for _, b := range []*evidence.ObservedBody{o.Request, o.Response} {
		switch {
		case b == nil || b.Bytes == 0:
		case b.Decoded != "":
			return fmt.Sprintf("the encoding %q of a body was not removed, so what it says was not read", b.Encoding)
		case strings.Contains(b.Type, ","):
			return fmt.Sprintf("a body has more than one content type, %q, and each reader takes another", b.Type)
		}
	}
	switch {
	case encoded(o.Request):
		return fmt.Sprintf("a server need not remove the encoding %q of a request", o.Request.Encoding)
	case encoded(o.Response) && !offered(o.Request, o.Response.Encoding):
		return fmt.Sprintf("the request does not say in Accept-Encoding that its sender removes the encoding %q of the response", o.Response.Encoding)
	}
	return ""
}

// offered reports whether a request says that its sender removes an encoding: each coding of it, none of which may be there twice.
func offered(request *evidence.ObservedBody, encoding string) bool {
	takes := accepted(request)
	for coding := range strings.SplitSeq(encoding, ",") {
		coding = plainCoding(coding)
		takesIt, named := takes[coding]
		if !named {
			takesIt = takes["*"]
		}
		if !slices.Contains(codings, coding) || !takesIt {
			return false
		}
		takes[coding] = false // a second time
	}
	return true
}

// accepted reads the header Accept-Encoding of a request: which codings it names, and whether they are taken. With a weight of 0 they are not.
func accepted(request *evidence.ObservedBody) map[string]bool {
	takes := map[string]bool{}
	var headers map[string]string
	if request == nil || request.Headers == nil || json.Unmarshal(request.Headers, &headers) != nil {
		return takes
	}
	for element := range strings.SplitSeq(headers["accept-encoding"], ",") {
		coding, weight, weighed := strings.Cut(element, ";")
		digits, is := strings.CutPrefix(strings.Trim(weight, " \t"), "q=")
		coding = plainCoding(coding)
		before, twice := takes[coding]
		takes[coding] = (!weighed || is && strings.ContainsAny(digits, "123456789")) && (before || !twice)
	}
	return takes
}

// plainCoding returns the name of a coding in one spelling.
func plainCoding(name string) string {
	name = strings.Trim(name, " \t")
	if name == "x-gzip" {
		return "gzip"
	}
	return name
}

package server

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"

	"jurat/api"
)

// pageRoutes are what people see.
func (s *Server) pageRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/sign-in", Kind: Page, Who: Anyone, Handle: s.signInPage},
	}
}

var signInForm = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in · jurat</title>
<main><h1>Sign in</h1>
<form method="post" action="/sign-in">
<input type="hidden" name="form" value="{{.Form}}"><input type="hidden" name="next" value="{{.Next}}">
{{if .Link}}<input type="hidden" name="link" value="{{.Link}}">{{else}}<label>Token <input type="password" name="token" required autocomplete="off"></label>{{end}}
<button>Sign in</button>
</form>{{if .Provider}}<p><a href="/sign-in/provider?next={{.Next}}">Sign in by {{.Provider}}</a></p>{{end}}</main></html>
`))

// signInPage asks for a token, or, where a link leads here, for one click.
func (s *Server) signInPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	var page bytes.Buffer
	q := r.URL.Query()
	fields := map[string]string{"Form": c.FormKey(), "Link": q.Get("link"), "Next": q.Get("next")}
	if s.config.Provider != nil {
		fields["Provider"] = s.config.Provider.Issuer()
	}
	if err := signInForm.Execute(&page, fields); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return write(w, r, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}

// refusePage answers a person whose request failed.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, _ *Caller, p *api.Problem) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, "%d %s\n\n%s\n", p.Status, p.Title, p.Detail)
	}
}

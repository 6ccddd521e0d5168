// Package api is what travels over HTTP between an installation of jurat and its clients: requests, answers, and what
// stands against a request. Server and client use these types and errors, so they cannot disagree about them.
//
// docs/api.md describes the interface, /openapi.json of every server describes it to programs. Sealed records and bundles
// travel as the files that they are (docs/format.md).
package api

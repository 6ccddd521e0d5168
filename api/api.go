// Package api defines the HTTP interface between an installation of jurat and its clients: requests, answers, and
// problems. Server and client use the same types and errors, so they cannot disagree.
//
// docs/api.md describes the interface to people, /openapi.json of every server to programs. Sealed records and
// bundles are sent as files (docs/format.md).
package api

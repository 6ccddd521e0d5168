// Package server serves an installation over HTTP.
//
// # Routes
//
// There is one table of routes (table.go). The multiplexer, the access checks, the OpenAPI description and the test
// of access rights are made from it, so a route outside the table cannot be reached. An area of the server is a file
// with a method of Server that returns its routes, and a line in table.go:
//
//	func (s *Server) recordRoutes() []Route {
//		return []Route{
//			{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Who: Readers, Handle: s.getRecord, …},
//
// A Handler gets the Caller with the request, and returns an error if it cannot do what is asked. An error of package
// api determines the answer (fmt.Errorf("%w: …", api.ErrInvalid)). inJSON, shown, sealing and entered make Handlers of
// functions. The server also knows the errors of ledger, keys and evidence (problem.go). It logs any other error as ErrInternal, and does not show it to the caller.
//
// A handler can rely on these checks. The caller has one of the route's roles. A request that changes something does
// not come from another site, and if it is signed in by cookie, it carries the session's form key (Caller.FormKey, in
// the field "form" or the header Jurat-Form). The body is no longer than Config.MaxBody, and readBody refuses one that
// nests too deep while it reads it. The answer has the security headers. Package acts decides what a record holds and
// who may seal it: handlers only translate. acts.MayRead decides what a caller may read, beyond its roles.
//
// # A refusal is a line of the program log
//
// Nobody can make the sealed log grow by being refused. The metrics count each refusal; the program log has a line a minute for each caller, route
// and reason, with the count.
//
// # A page reads its part of a chain, and the log the rest
//
// Lists come from the index of words, which knows what recorders saw in each chain without reading it. The page of a chain reads the records up
// to its last act, because bodies copy from earlier ones, but reads messages and verifies records of its own part alone. So no page grows with the
// log, and the first page of a chain does not grow with the chain.
//
// # What a trial takes in cannot be erased there
//
// A trial of a recorded chain gets its texts, also those that are sealed apart, as a trial begun on the command line does. The form says so. If its
// submitter reads the chain only because it is public, the trial gets what strangers get, without these texts.
package server

// Package server is an installation's house as people and programs enter it over HTTP.
//
// # Routes
//
// There is one table of routes (table.go). The multiplexer, the access checks, the OpenAPI description and the test of who
// may do what are made of it, so that nothing can be reached that is not in it. An area of the house is a file with a method
// of Server that returns its routes, and a line in table.go:
//
//	func (s *Server) recordRoutes() []Route {
//		return []Route{
//			{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Who: Readers, Handle: s.getRecord, …},
//
// A handler is a Handler: it has the Caller beside the request, and returns an error where it cannot do it. An error of
// package api says what the answer is (fmt.Errorf("%w: …", api.ErrInvalid)), errors of ledger, keys and evidence are
// known, too (problem.go), and every other one is ErrInternal: logged, and told to nobody.
//
// What a handler can rely on: the caller has one of the route's roles; a request that changes something does not come from
// another site, and, where it is signed in by cookie, carries the session's form key (Caller.FormKey, in the field "form" or
// the header Jurat-Form); the body cannot be longer than Config.MaxBody, and Body refuses one that is too deep while it is
// read; the answer has the security headers. What records are sealed of, and by whom, package acts decides: handlers translate. What reading depends on beside roles is in acts.MayRead.
//
// # One table of routes
//
// The multiplexer, the access checks, the OpenAPI description, and the test that asks for every route as everybody, are made of it.
// A route that is in none of them cannot be reached.
//
// # A refusal is a record, a stranger's a count
//
// Whoever has a token that was once given out is refused by name, before the answer goes out. A stranger, and whoever asks too
// often, is counted, and the counts of a minute are one act: nobody without a token can make the log grow by more than that.
package server

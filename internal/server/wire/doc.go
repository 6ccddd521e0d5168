// Package wire reads the bodies of requests and writes their answers: JSON within limits, files with their ETag, and errors as problem
// details (RFC 9457). It knows no routes.
package wire

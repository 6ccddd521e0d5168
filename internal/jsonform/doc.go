// Package jsonform reads and writes JSON documents that have exactly one form: that of RFC 8785, restricted so that two
// documents of different content never share it. Its errors name the place and the reason.
//
// It knows documents and not what they say. Package evidence sets the bounds.
package jsonform

// Package relay passes HTTP calls on to model providers unchanged, and shows a copy of them to a witness. A recorder is built on it; the package itself
// seals nothing. A [Relay] is a handler for a proxy, and a transport for a program that makes the calls itself. Both read through one [passage]: what
// it reads from the provider goes into a spool and through a finder before the client gets it.
//
// # Bytes are copied, never framed again
//
// Bodies go through as they came, whatever they are: compressed, no JSON, cut off. Only the copy is decoded and read. Headers for one hop are removed, as
// HTTP demands. Nothing is retried, cached, translated or added. Accept-Encoding goes to the provider as the client sent it.
//
// # The request is read before it is sent
//
// The witness must know the digest of a request before the provider gets it. So the relay reads the whole request into the spool first. A caller that wants
// an answer before it has sent its request cannot be served; model calls do not need that.
//
// # The end is held back
//
// In closed mode, the client gets no terminal event before Exchange.End has returned: SDKs stop reading at that event, so an answer without a record would
// be complete for them. The [Protocol] of the upstream says what the terminal event is. In a JSON body it is the byte that closes the document, in other
// bodies with a Content-Length the last byte, else the end of the body itself.
//
// Each event is held until it is complete, because an unfinished event may be the terminal one, and a client cannot use it. Where the body is compressed, a
// decoder runs in step with the copy. A compressed byte passes once everything that can be decoded up to it may pass. Writers of events flush after each
// event, so that costs no time. Where the copy cannot be decoded, the last 512 bytes are held.
//
// In open mode nothing is held, and End is called afterwards in a goroutine of its own. Relay.Wait waits for those.
//
// # A pipe is passed line by line
//
// MCP also runs on the standard streams of a server that its client starts, with a message in each line. [Pipe] passes them. A line of which not every
// reader would make the same message, such as one with two ids, counts as no answer: the witness sees it as it is, so a client that takes it for an answer
// has one that was recorded.
//
// # Memory is bounded, and so is the disk
//
// A copy stays in memory up to 256 KiB, and goes to a file in a private folder then. That of a request is encrypted, as it may have secrets, under a key that
// the process keeps in memory; an answer's can be read by the next process, if this one dies. All copies together have a limit, in memory and in all. Above
// it, closed mode refuses calls with 503, and breaks off those that are under way; open mode passes them and reports what is missing in the copy
// (Body.Kept). The relay reads from the provider no faster than the client takes it.
//
// # What the witness may see
//
// The witness gets the headers and query parameters that are on a list, and no others. It gets credentials only as HMAC-SHA-256 under a key of the operator.
// The provider's address comes from the options alone, never from the request.
//
// # An answer does not lead past the relay
//
// A client that follows a redirect to the provider's own address, or to one for uploads, goes on without a record. Closed mode answers 502 in place of such
// an answer. Open mode passes it, and tells the witness that a call was missed.
//
// # An upgrade is not recorded
//
// WebSocket frames are not read here. Closed mode refuses an upgrade with 426, and clients then fall back to HTTP. Open mode passes it, and tells the witness
// that it was missed. An offer to speak HTTP in another way (h2c) is ignored: RFC 9110, section 7.8, lets a server do so.
package relay

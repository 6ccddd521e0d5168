// Package eulist reads the trusted lists of the European Union (ETSI TS 119 612, versions 5 and 6): which services are qualified by
// Regulation (EU) No 910/2014, since when and until when. It uses no clock, file or network: the caller brings the bytes.
//
// # From the Official Journal to a service
//
// The Official Journal publishes certificates. One of their keys signs the list of the lists, or a pivot: an older list of the lists that
// names the signers from then on. Chain verifies the pivots and then the list of the lists. This list names, for
// each territory, the certificates that may sign the territory's list. Verify checks a list by these certificates.
//
// # What is read is what is signed
//
// Attacks on XML signatures have one cause: a program verifies one tree and reads another. This package has one tree. It hashes the tree's canonical
// form, without the signature, and reads the list from the same nodes. It accepts only the part of XML that lists
// use:
//
//   - UTF-8, at most MaxSize bytes, bounds on elements, depth, attributes and namespaces in force;
//   - no document type, no entity but XML's five, no processing instruction, names in ASCII. Comments are not part of the tree,
//     and not of the canonical form;
//   - no repeated attribute, no repeated identifier (Id, ID, id, xml:id), no undeclared prefix.
//
// It accepts one form of signature (XAdES baseline B, enveloped):
//
//   - one Signature in the document, a child of the root, with SignedInfo, SignatureValue, KeyInfo and one Object;
//   - two references: one over the list, by an empty URI or the root's Id, with the transforms enveloped-signature and exclusive
//     canonical form; and one over the signed properties, with exclusive canonical form or, without transforms, inclusive;
//   - SHA-256, 384 or 512; RSA (PKCS #1 v1.5 or PSS, 2048 bits at least) or ECDSA. The signed properties may name the
//     signer's certificate by SHA-1, as lists before 2019 do: the certificate itself is compared;
//   - the first certificate in KeyInfo is the one that the signed properties name, and equal to one of the caller's signers. No
//     certificate path is built. It was still valid when the list was issued.
//
// A list in another form is refused, even if another reader could verify it.
//
// # What a list does not say
//
// A list does not say whether it is the newest one: NextUpdate says until when no other is due. It does not say whether its statements
// about the past were made in the past. An unreadable certificate in it is skipped, and does not invalidate the list.
package eulist

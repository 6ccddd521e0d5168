// Package timestamp makes and verifies RFC 3161 time stamps and RFC 4998 evidence
// records: requests, responses, tokens, hash trees, renewals, the built-in
// authority, and a mock of it for tests. It does no input or output: whoever asks
// an authority over the network brings the bytes here.
//
// The structures are read and written here, on x/crypto/cryptobyte, and not by a
// general CMS library. Those at hand parse a token without authenticating it (no
// trust, no purpose, no certificate identifier, and without an embedded
// certificate no signature at all), and their ASN.1 readers recurse as deep as
// the input nests, which kills the process on a few megabytes of "30 80 30 80 …".
// Here nothing recurses, and what is larger than MaxTokenSize is refused unread.
//
// # What is a token
//
// A TimeStampToken is a ContentInfo with a SignedData (RFC 5652) around a TSTInfo
// (RFC 3161, 2.4.2). Parse demands:
//
//   - at most MaxTokenSize bytes of strict DER, nothing after any structure.
//     Indefinite lengths and other BER are refused as malformed, though RFC 5652
//     allows them outside the signed part: one content has one file, and a reader
//     that takes only one form is one that can be read through;
//   - the SignedData version that RFC 5652, 5.1 demands (3; 4 with attribute
//     certificates; 5 with certificates or revocation information of other
//     kinds), or 1, which authorities send; eContentType id-ct-TSTInfo;
//     certificates (if any) in any order, of which those that are not of the X.509
//     kind are not looked into, as other revocation information is not; exactly
//     one SignerInfo, whose version fits its identifier and whose digest algorithm
//     is among digestAlgorithms;
//   - signed attributes in DER order; contentType and messageDigest exactly once,
//     SigningCertificate and SigningCertificateV2 at most once, each with one
//     value; contentType is id-ct-TSTInfo;
//   - TSTInfo version 1; genTime a GeneralizedTime with seconds, with Z, with a
//     fraction only if it needs one and then without trailing zeros (nanoseconds
//     at the finest); accuracy within its ranges; a SHA-256 imprint 32 bytes long,
//     one of SHA-384 48 and one of SHA-512 64; ordering and the criticality of an
//     extension may be FALSE where DER leaves out what is FALSE, as they are signed
//     the way they stand.
//
// Its result, Unverified, is a claim by anybody. Only Verify makes a Token of it.
//
// # What Verify checks
//
// All of the following, in this order; the error in brackets is the answer when
// that check fails. Every check is made on receipt and at every later time alike,
// from what the reader brings in Options, never on the word of the token.
//
//  1. The imprint is SHA-256 (for VerifyImprint: of the algorithm that the caller
//     says) and the one expected [ErrImprint]; the nonce, when
//     Options has one, is there and equal [ErrNonce]; the policy, when Options
//     lists some, is listed [ErrPolicy]; no TSTInfo extension is critical
//     [ErrExtension].
//  2. The signer's certificate, given by issuer and serial number or by subject
//     key identifier, is embedded or in Options [ErrNoCertificate: the token can
//     be neither proved nor refuted].
//  3. The signed SigningCertificateV2 attribute names that certificate first, by
//     its hash (SHA-256, 384 or 512; ErrAlgorithm for others) and, where stated,
//     issuer and serial number [ErrCertificateID]. Where, and only where, it is
//     absent, SigningCertificate counts, whose hash is SHA-1: public authorities
//     still send it. Further certificates that these attributes name are not
//     compared with the path.
//  4. The certificate's extended key usage is there, critical, and time stamping
//     alone; key usage, if there, allows signatures [ErrUsage].
//  5. The messageDigest attribute is the digest of the TSTInfo, and the signature
//     is over the signed attributes as a SET OF [ErrSignature]: ECDSA on P-256 or
//     P-384, RSA PKCS #1 v1.5 or RSA-PSS of 2048 to 8192 bits, digests SHA-256,
//     384 and 512, the same one throughout [ErrAlgorithm for others, SHA-1 among
//     them].
//  6. The certificate is not for a key of the mock authority, nor is any in the
//     path [ErrMock], unless UnsafeAllowMock.
//  7. A path leads to one of Options.Roots that was valid at genTime, with time
//     stamping allowed all along it [ErrUntrusted]; crypto/x509 builds it, with
//     the embedded and the given certificates as untrusted intermediates, and
//     refuses critical extensions that it does not know. The machine's own roots
//     are never used. With Options.Until, all its certificates were valid until
//     then, too [ErrExpired].
//
// What Verify cannot know: whether the certificate was revoked, which needs a
// source newer than the token, and whether the authority told the truth.
//
// # What no check covers
//
// The SignedData version, certificates that are embedded but not needed (the signer's
// too, if the reader has it), revocation information, and unsigned attributes can be changed, added or removed by anybody without a trace; nothing
// is taken from them on trust. The tsa name within TSTInfo is signed but only a
// hint (RFC 3161, 2.4.2) and is not compared. An ECDSA signature has a second
// valid form that anybody can compute. The bytes of a token are therefore no
// identity: use its serial number, its time and its imprint.
//
// # Evidence records
//
// A Tree makes one token do for many groups of data objects; each then has an
// EvidenceRecord (RFC 4998) that verifies alone, and can be renewed: by a further
// token over the last one, before its certificate ends, or by a further chain with
// another hash over the data objects and all chains so far, before the hash does.
//
// ParseEvidenceRecord takes strict DER of version 1 with SHA-256, 384 and 512, at
// most MaxTokenSize bytes, 64 time stamps and 256 lists in a tree. What it does not
// look into (cryptoInfos, encryptionInfo, attributes) is ErrUnsupported: such a
// record may be sound. Where RFC 4998 leaves open what is hashed, this is taken:
// what a hash-tree renewal hashes beside each data object is the DER of an
// ArchiveTimeStampSequence of all chains before; the hash of the object comes first;
// the first list of a tree has two hashes at least, as over a lone one readers
// differ; and the first list of a chain has the group and nothing else, in any order.
//
// # The built-in authority
//
// Authority stamps by the operator's own clock, under BuiltInPolicy and with
// certificates whose names say so. It writes genTime in milliseconds, cut and not
// rounded, a random serial number of 128 bits, SHA-256 throughout, and no
// accuracy, since nobody has measured that clock. It embeds its certificate if
// and only if the request asks for it, as RFC 3161, 2.4.1 demands. NewRoot and
// NewCertificate make its two certificates; keys are the caller's to keep.
//
// NewMock is the authority for tests. Its keys are published, and Verify knows
// them.
//
// # Time stamps are read and written here
//
// The Go libraries at hand parse tokens without authenticating them, and recurse as deep as the input nests, which a few megabytes
// can turn into a crash. `timestamp` is about a thousand lines on `cryptobyte` with OpenSSL as its outside judge in both directions.
// The built-in authority is always labelled as the operator's own clock.
//
// # One token for many, and a second for the first
//
// Evidence records (RFC 4998) have both: a hash tree of which an authority stamps the root, and renewal. They are over the
// signatures and the payload, so that a stronger hash covers what the first one did, and over older tokens, which thereby outlive
// their authority. The reader says when belief in an authority ends. Where only the operator's clock shows that a token is older
// than that, its time is the operator's word: he could have had the stolen key.
//
// # What is remembered between tokens is known by bytes
//
// Certificates and certificate paths are the same in most tokens of a file. A path is found again by the exact bytes of every
// certificate that was looked at and by which of them were valid at the token's time, on which alone the answer rests, and only
// within one verification.
package timestamp

// Package timestamp makes and verifies RFC 3161 time stamps: requests, responses, tokens, the built-in authority, and a mock of it for tests. It does no
// input or output: the caller talks to the authority and passes the bytes.
//
// # What is a token
//
// A TimeStampToken is a ContentInfo with a SignedData (RFC 5652) around a TSTInfo (RFC 3161, 2.4.2). Parse demands:
//
//   - at most MaxTokenSize bytes of strict DER, nothing after any structure. Indefinite lengths and other BER are refused as malformed, though RFC 5652
//     allows them outside the signed part: one content has one file, and a parser for a single form is easier to review;
//   - the SignedData version that RFC 5652, 5.1 demands (3; 4 with attribute certificates; 5 with certificates or revocation information of other
//     kinds), or 1, which authorities send; eContentType id-ct-TSTInfo; certificates (if any) in any order; those that are not X.509, and other
//     revocation information, are not parsed; exactly one SignerInfo, whose version fits its identifier and whose digest algorithm is among
//     digestAlgorithms;
//   - signed attributes in DER order; contentType and messageDigest exactly once, SigningCertificate and SigningCertificateV2 at most once, each with one
//     value; contentType is id-ct-TSTInfo;
//   - TSTInfo version 1; genTime a GeneralizedTime with seconds, with Z, with a fraction only if it needs one and then without trailing zeros (nanoseconds
//     at the finest); accuracy within its ranges; a SHA-256 imprint 32 bytes long, one of SHA-384 48 and one of SHA-512 64; ordering and the criticality
//     of an extension may be FALSE where DER would leave it out, because the signature covers them as written.
//
// Its result, Unverified, proves nothing. Only Verify makes a Token of it.
//
// # What Verify checks
//
// All of the following, in this order; the error in brackets is the answer when that check fails. Verify makes every check on receipt and at every later
// time alike. It relies on the reader's Options, never on the token's own statements.
//
//  1. The imprint is SHA-256 and the one expected [ErrImprint]; the nonce, when Options has one, is there and equal [ErrNonce]; the policy, when Options
//     lists some, is listed [ErrPolicy]; no TSTInfo extension is critical [ErrExtension].
//  2. The signer's certificate, given by issuer and serial number or by subject key identifier, is embedded or in Options [ErrNoCertificate: the token can
//     be neither proved nor refuted].
//  3. The signed SigningCertificateV2 attribute names that certificate first, by its hash (SHA-256, 384 or 512; ErrAlgorithm for others) and, if stated,
//     issuer and serial number [ErrCertificateID; ErrNoCertificate if the hash is that of none that is there]. Only if it is absent, SigningCertificate
//     counts, whose hash is SHA-1: public authorities still send it. Further certificates that these attributes name are not compared with the path.
//  4. The certificate's extended key usage is there, critical, and time stamping alone; key usage, if there, allows signatures [ErrUsage].
//  5. The messageDigest attribute is the digest of the TSTInfo, and the signature is over the signed attributes as a SET OF [ErrSignature]: ECDSA on P-256
//     or P-384, RSA PKCS #1 v1.5 or RSA-PSS of 2048 to 8192 bits, digests SHA-256, 384 and 512, the same one throughout [ErrAlgorithm for others, SHA-1
//     among them].
//  6. The certificate is not for a key of the mock authority, nor is any in the path [ErrMock], unless UnsafeAllowMock.
//  7. A path leads to one of Options.Roots that was valid at genTime, with time stamping allowed all along it [ErrUntrusted]; crypto/x509 builds it, with
//     the embedded and the given certificates as untrusted intermediates, and refuses critical extensions that it does not know. The machine's own roots
//     are never used. With Options.Until, all its certificates were valid until then, too [ErrExpired].
//
// What Verify cannot know: whether the certificate was revoked, which needs a source newer than the token, and whether the authority told the truth.
//
// # What no check covers
//
// The SignedData version, certificates that are embedded but not needed (the signer's too, if the reader has it), revocation information, and unsigned
// attributes: anyone can change, add or remove these without a trace. Verify does not trust them. The tsa name within TSTInfo is signed but only a hint
// (RFC 3161, 2.4.2) and is not compared. An ECDSA signature has a second valid form that anyone can compute. So the bytes of a token do not identify it:
// use its serial number, its time and its imprint.
//
// # The built-in authority
//
// Authority stamps by the operator's own clock, under BuiltInPolicy and with certificates whose names say so. It writes genTime in milliseconds, truncated
// and not rounded, a random serial number of 128 bits, SHA-256 throughout, and no accuracy, because no other party has measured that clock. It embeds its
// certificate only if the request asks for it, as RFC 3161, 2.4.1 demands. NewRoot and NewCertificate make its two certificates. The caller keeps the keys.
// NewMock is the authority for tests. Its keys are published, and Verify knows them.
//
// # Time stamps are read and written here
//
// The available CMS libraries parse a token without authenticating it: they check no trust, purpose or certificate identifier, and without an embedded
// certificate not even the signature. Their ASN.1 readers recurse as deep as the input nests, so a few megabytes of "30 80 30 80 …" crash the process. This
// package is built on x/crypto/cryptobyte and never recurses; tests compare it with OpenSSL in both directions.
//
// # What is remembered between tokens is known by bytes
//
// Most tokens of a file have the same certificates and certificate paths. A remembered path is found by the exact bytes of every
// certificate that was considered, and by which of them were valid at the token's time. The answer depends on nothing else. It is
// remembered only within one verification.
package timestamp

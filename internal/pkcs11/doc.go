// Package pkcs11 signs with keys on a token: a hardware security module, a smart card, or SoftHSM, through the vendor's
// PKCS #11 library (OASIS PKCS #11 v2.40). Only jurat-token links it. A vendor's library that crashes ends that program, not jurat.
//
// The package needs no cgo: purego calls the library. The structures here have the layout of Unix systems, where CK_ULONG is
// as wide as a pointer.
//
// # A PIN is tried once
//
// A token locks itself after a few wrong PINs. So a PIN that the token refused is never tried again by the same Token. A PIN
// is not tried at all where the token says that a wrong one was tried since the last right one: another process may have
// tried the same. Config.Again allows one try there, for a person who has put the PIN right.
//
// # What memory the library sees
//
// The library writes through pointers that Go's collector and growing stacks know nothing of. All memory that a call names is
// pinned with runtime.Pinner before its address is taken, nested values of attributes included.
//
// # Which keys sign
//
// A key signs only if the token says that the key is sensitive and cannot be exported. It must also have been so since the
// token made it (ALWAYS_SENSITIVE, NEVER_EXTRACTABLE, LOCAL). Config.AllowImported drops the second demand.
package pkcs11

// Package rig gives tests what is outside of the program, on this machine: a small disk that the test can fill or make read-only (on Linux), a
// PostgreSQL server in a temporary folder, a token of SoftHSM with the program jurat-pkcs11, and a provider of OpenID Connect. All end with the
// test process, however that ends.
package rig

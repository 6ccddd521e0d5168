// Package recorded makes what people and programs see of what recorders sealed: a chain of recorded calls as it is read, and
// lists of such chains. Pages, the command line and the API show the same.
//
// # The messages are those of the jury
//
// A chain is read as package subject reads it for a trial: each message once, however often it was sent again. So what a person
// reads is what jurors would get, and message numbers are the same.
//
// # It verifies nothing
//
// What stands here is what the records say. Whether they are whole, and whose they are, is for package verify to say.
package recorded

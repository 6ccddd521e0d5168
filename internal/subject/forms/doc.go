// Package forms has the forms in which people bring conversations, and recognises them.
//
// # A form shows itself in the structure
//
// Only what one form alone can have counts, such as a type of a part. What was said never counts: whoever brings a conversation could
// otherwise choose how it is read by what stands in it. Signs of two forms are refused, and the caller names one.
package forms

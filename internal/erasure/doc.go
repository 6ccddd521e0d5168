// Package erasure keeps the values that are sealed apart, so that they can be disclosed later, or destroyed. A Keeper decides what is
// sealed apart for each actor, an Eraser destroys values, and a Fsck checks the kept values against the log.
//
// Each value is encrypted (AES-256-GCM, together with the salt of its commitment) under a key of its own. In a data folder the values are
// in a table and the keys in a file of slots:
//
//	apart/values.db      the values: copy them into backups as you like
//	apart-keys/N.keys    the keys, of 32 bytes: keep them only where they can be destroyed
//
// In a database that machines share, each is a file of its file store (see InFiles).
//
// Destroying one key of 32 bytes erases the value from every copy. A value's name is RECORD-MEMBER: the payload's digest, and the beginning of
// the SHA-256 of the JSON pointer. So no text of an actor is part of a name. A record that is sealed twice has its values twice, and the log
// accepts one of the two.
//
// A value is complete before its record is appended. A crash before that leaves a value whose record is not in the log. It proves and
// harms nothing, but it is a text that an actor said, so fsck reports it.
//
// # One key for each value, and keys apart from values
//
// Values and salts are encrypted, each under a key of its own. Backups copy the values and leave out the keys, so destroying 32 bytes erases
// every copy of a text. Both are durable before the record is appended, so no record in the log has lost its texts. Values are named by the
// payload's digest and not by the record id: a draft that is sealed twice has two sets of salts, and the log accepts one.
//
// # What "destroyed" means
//
// Destroy overwrites the key with zeros where it is and syncs it, and then removes the value. That suffices if both the file system and the disk write in place.
// SSDs write elsewhere and keep the old block until they collect it. File systems that copy on write (btrfs, ZFS, APFS), data journals,
// snapshots and backups keep the old key as long as they keep the old state. There a value is gone when the last copy of its key is gone.
// So put `apart-keys` on storage that you can destroy as a whole, or that is encrypted itself, without snapshots. If you must back it up,
// keep the backups for less time than you may keep the texts. A reader to whom a text was disclosed still has it.
//
// # An erasure is an act, and the act comes first
//
// The order is intent, act, key, value. The intent fixes the act's record id, so the act is in the log once, even after crashes and races.
// Once the act is in the log, the next process that opens the installation finishes the erasure. For a moment the act may precede the
// erasure. That is better than a text that is gone without an act that says so.
//
// # An erasure looks before it acts
//
// Erasing one copy of a text does not erase the same text in another record. So the Eraser searches every payload and every kept value for
// the text. It also looks for parts of the text that are strings of their own, such as quotations in a juror's findings. The search finds
// equal text only.
package erasure

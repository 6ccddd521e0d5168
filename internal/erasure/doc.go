// Package erasure keeps what opens the members that are sealed apart, so that it can be disclosed later, or destroyed. A Keeper says what
// is sealed apart of whom, an Eraser destroys, and a Fsck holds what is kept against the log.
//
// Each value lies encrypted (AES-256-GCM, together with the salt of its commitment) under a key of its own. Values and
// keys are in two folders:
//
//	apart/values/3f/RECORD-MEMBER.json   a value: copy it into backups and archives as you like
//	apart-keys/3f/RECORD-MEMBER.key      its key, 32 bytes: keep it only where it can be destroyed
//
// so that destroying one key of 32 bytes erases the value from every copy. RECORD is the payload's digest in
// hexadecimal, whose first byte names the folder, and MEMBER the beginning of the SHA-256 of the JSON pointer: nothing
// that an actor wrote is part of a file name, and a record that is sealed twice, of which only one can get into the
// log, has its values twice.
//
// An entry is whole before its record is appended. A crash before that leaves an entry of a record that is not in the
// log: it proves nothing and harms nothing, but it is a text that somebody said, so fsck names it.
//
// # One key for each value, and keys apart from values
//
// The values and salts of what is sealed apart lie encrypted in `apart/values`, each under a key of its own in `apart-keys`: backups
// and archives take the former and leave out the latter, and one file of 32 bytes reaches every copy of a text. Both are durable
// before the record is appended, so no record is in the log whose texts were lost on the way. They are filed by the payload's digest
// and not by the record id: a draft that is sealed twice has two sets of salts, and the log takes one.
//
// # What "destroyed" means
//
// The key is overwritten with zeros, synced, and its file removed. That suffices where a file system writes in place on a disk that
// does, too. SSDs write elsewhere and keep the old block until they collect it; file systems that copy on write (btrfs, ZFS, APFS),
// journals of data, snapshots and backups keep the old key as long as they keep the old state. There a value is gone when the last
// copy of its key is: put `apart-keys` on storage that you can destroy as a whole or that is encrypted itself, without snapshots,
// and keep its backups, if you must have any, shorter than you may keep the texts. A reader to whom a text was disclosed has it
// still.
//
// # An erasure is an act, and the act comes first
//
// The order is intent, act, key, value. The intent fixes the act's record id, so the act is in the log once, whoever crashes or
// races; from the act on whoever next opens the installation finishes. An act whose text is still there for a moment is better than
// a text that is gone and nothing that says so.
//
// # An erasure looks before it acts
//
// A text that also stands as it is in another record is not gone because one copy is. So every payload and every kept text is
// searched for it, and for parts of it that stand as strings of their own, such as quotations in a juror's findings. It is a search
// for equal text, no more.
package erasure

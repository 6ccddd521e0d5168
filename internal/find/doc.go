// Package find answers who said something and when, and which trials match a search: over a whole log, in a fraction
// of a second.
//
// An Index finds records by their words, actor, action, time and chain. A Docket selects, sorts and counts trials.
//
// # The index of words is a file that can be made again
//
// The index is a SQLite file beside the log, find.db in the data folder of each machine. It holds no original: if it is
// missing, damaged, of another version or of another log, the next use makes it again from the records, and reports
// progress. So the log's database and its migrations stay as they are, and PostgreSQL and SQLite share one search. If
// the folder cannot be written, the index is in memory.
//
// The index follows the log. Follow reads what any process appended since the last time: sealing a record costs
// nothing for it. One transaction adds a batch. Several processes may do that at once; each goes on where another ended.
//
// # Words are found by pieces of them, and every hit is checked
//
// SQLite's full-text index (FTS5) says which records have which terms. A term stands for a piece of three characters, or of
// two where one of them is of a script that is written without spaces. So every quotation is found in any language, from
// three letters or two characters of Japanese on, with its punctuation. Letter case, compatible forms (NFKC) and the
// length of white space make no difference. Other terms stand for an actor, an action or a chain. A record that has all
// terms is opened, and shown only if it has the text itself. What is searched are the strings of prompt, context, response,
// tools_used, metadata, changes and modified_response, each by itself.
//
// A term is a hash of what it stands for, under a key that each file has for itself. FTS5 keeps neither texts nor where in a
// record a term is. In a million records of two kilobytes that is about a byte for each different piece of a record.
//
// Refused: the trigrams of FTS5, which do not find Japanese words of two; and its deletion of words by their text, because
// the text of an expired record is gone. Here FTS5 marks the record, and merges its terms anew without it.
//
// # What was sealed apart is in no index, and what has expired leaves it
//
// The index is made of records as the log has them, with commitments in the place of what was sealed apart. When records
// expire, the log's act about that names their range. As soon as their content is gone, the index removes what it has of
// them, overwrites it (secure_delete), and empties the write-ahead log. Even before that a record that has expired is not
// shown, because it cannot be opened.
//
// # A search says nothing about what its reader may not read
//
// A reader who may not read everything brings a Scope: the trials or the actor that the search is limited to. It
// limits the candidates, before they are opened or counted, so neither hits nor pages depend on other records.
package find

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
// nothing for it. The newest records, at most a stretch, are searched in memory. When they fill a stretch, one
// transaction writes it. Several processes may do that at once; the second finds it done.
//
// # Words are found by pieces of them, and every hit is checked
//
// The index knows for each stretch of up to 4,096 records which pieces of three characters occur in which records, and
// pieces of two where one of them is of a script that is written without spaces. So every quotation is found in any
// language, from three letters or two characters of Japanese on, with its punctuation. Letter case, compatible forms
// (NFKC) and the length of white space make no difference. A record that has all pieces is opened, and shown only if it
// has the text itself. A second index of the pieces, over blocks of 64 stretches, says which stretches a search can leave
// out. What is searched are the strings of prompt, context, response, tools_used, metadata, changes and
// modified_response, each by itself.
//
// SQLite's own full-text index (FTS5) was refused: its pieces of three characters do not find Japanese words of two,
// and a deleted word stays in its file until segments are merged. Here a stretch is a few rows that can be overwritten.
//
// # What was sealed apart is in no index, and what has expired leaves it
//
// The index is made of records as the log has them, with commitments in the place of what was sealed apart. When records
// expire, the log's act about that names their range. As soon as their content is gone, the index makes the stretches of
// that range again and overwrites what they held. Even before that a record that has expired is not
// shown, because it cannot be opened.
//
// # A search says nothing about what its reader may not read
//
// A reader who may not read everything brings a Scope: the trials or the actor that the search is limited to. It
// limits the candidates, before they are opened or counted, so neither hits nor pages depend on other records.
package find

// Package duties says which clauses of a law the records of an agent answer, and what they do not show.
//
// A [Mapping] has the clauses, and for each the members of records that answer it. [Gather] reads a log and counts the records of an agent by what they
// show; [Facts.Report] puts both together. The mapping of the EU AI Act is [AIAct]; another one is another value of Mapping.
//
// # A report claims no conformity
//
// Whether a duty is met is a legal question, and much of the answer is outside of any log. So the report has counts, records to look at and
// how they were verified, and for each clause what the records do not show. A clause without records says so.
//
// # Every count is of records
//
// Each line names the first and the last of the records that it counts, so that a reader can open them. What is counted is
// verified as a stranger would verify it; a line says how many of its records are proved, and not that they are true.
package duties

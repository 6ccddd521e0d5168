package ledger

// Seats returns how many callers are in the queue, and how many fit.
func (l *Ledger) Seats() (taken, all int) { return len(l.queue.seats), cap(l.queue.seats) }

// LastLinks is how many of a chain's last records are compared.
const LastLinks = lastLinks

package docket

// Stops reports whether nobody is asked any more in a trial that is conducted here.
func (d *Docket) Stops(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.here[id]
	return s != nil && s.adjourned
}

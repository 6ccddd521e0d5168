package docket

// Limit makes a Cache compute nothing of agents with more records.
func (c *ConductCache) Limit(most int) { c.most = most }

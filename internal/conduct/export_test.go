package conduct

// Limit makes a Cache compute nothing of agents with more records.
func (c *Cache) Limit(most int) { c.most = most }

// Package bench has benchmarks alone: of this program's main work, each beside a limit that is measured in the same run and in turn with it, such as bare
// signatures, a synced page, or a proxy that records nothing. A figure belongs to one machine at one moment; its ratio to the limit can be compared, since what
// disturbs the machine disturbs both. 'scripts/test bench' prints a table of them. The folder TMPDIR says which disk they measure.
package bench

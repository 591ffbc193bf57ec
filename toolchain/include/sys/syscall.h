/* No system calls by number: the numbers differ on every processor. Code that asks `#ifdef SYS_name` takes its portable
 * branch. */

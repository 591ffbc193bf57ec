/* No auxiliary vector: what it says about the processor means something else on every processor. */

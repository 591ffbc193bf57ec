/* The intrinsics of one processor are outside VIS-1: the module must suit every processor.
 *
 * Every header of intrinsics in this directory includes this file, so that one clear error takes the place of the
 * compiler's many. Portable SIMD is written with vector types (__attribute__((vector_size(N)))),
 * __builtin_shufflevector and __builtin_convertvector, or as plain loops, which the installer vectorises.
 */
#error "intrinsics of one processor are outside VIS-1: use plain loops or vector_size types, or define the macro of this library that selects its portable C code"

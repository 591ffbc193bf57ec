/* x86gprintrin.h is not for portable code: see vis_no_intrinsics.h. */
#include <vis_no_intrinsics.h>

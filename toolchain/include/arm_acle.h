/* arm_acle.h is not for portable code: see vis_no_intrinsics.h. */
#include <vis_no_intrinsics.h>

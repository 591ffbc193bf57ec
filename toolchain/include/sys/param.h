/* <sys/param.h> with the largest NGROUPS in use: it is the size of a buffer for getgroups. */
#ifndef __VIS_SYS_PARAM_H
#define __VIS_SYS_PARAM_H
#include_next <sys/param.h>
#undef NGROUPS
#define NGROUPS 65536
#endif

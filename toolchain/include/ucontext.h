/* No contexts: they hold the registers of one processor. Including the header is harmless. */
#include <signal.h>

/* libjpeg's interface with what it needs before it. */
#ifndef JPEG_H
#define JPEG_H
#include <stddef.h>
#include <stdio.h>
#include "jpeglib.h"
#endif

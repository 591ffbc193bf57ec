// What C++ expects of the object file that a module will be: a handle of its own, and a list of the objects to destroy
// at its end. (The C++ ABI of Itanium, section 3.3.6.3.)
//
// A C library has such a list too, but one of the module's own is finished exactly when the module goes: when it is
// unloaded, or after all that the program registered for its end.

#include "items.h"

namespace {
Item* objects;
}

extern "C" {

void* __dso_handle = &__dso_handle;

int __cxa_atexit(void (*destroy)(void*), void* object, void*) {
  Item* item = make_item(destroy, object);
  if (!item)
    return -1;
  push(objects, item);
  return 0;
}

// After the module's own destructors, as everywhere.
__attribute__((destructor(101))) static void end_of_objects() { finish(objects); }
}

// The lists of the thread-local objects to destroy at the end of each thread. (The C++ ABI of Itanium, section 3.3.7.)
//
// Not every C library has them; all have keys with destructors.

#include "items.h"

#include <pthread.h>

namespace {

thread_local Item* objects;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t key;
enum { NONE, MADE, GONE } state;

void end_of_thread(void*) { finish(objects); }

bool have_key() {
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == NONE) {
    pthread_mutex_lock(&lock);
    if (state == NONE && pthread_key_create(&key, end_of_thread) == 0)
      __atomic_store_n(&state, MADE, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
  }
  return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == MADE;
}

} // namespace

extern "C" int __cxa_thread_atexit(void (*destroy)(void*), void* object, void*) {
  if (!have_key() || (!objects && pthread_setspecific(key, &key) != 0))
    return -1;
  Item* item = make_item(destroy, object);
  if (!item)
    return -1;
  push(objects, item);
  return 0;
}

// This thread's objects go before those that live as long as the module. Other threads that still run never destroy
// theirs: their end must not call code that is gone.
__attribute__((destructor(102))) static void end_of_module() {
  finish(objects);
  pthread_mutex_lock(&lock);
  if (state == MADE)
    pthread_key_delete(key);
  __atomic_store_n(&state, GONE, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
}

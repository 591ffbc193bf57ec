// Waiting for a word of memory to change, for std::atomic::wait, std::latch, std::barrier and std::counting_semaphore.
//
// The number of the system call that does it differs between processors, and not every system has it. Threads wait on
// one of a few condition variables, chosen by the address of the word.

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

namespace {

struct Place {
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

Place places[16]; // zeros are PTHREAD_MUTEX_INITIALIZER and PTHREAD_COND_INITIALIZER

struct timespec deadline(const struct timespec& duration) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += duration.tv_sec;
  now.tv_nsec += duration.tv_nsec;
  if (now.tv_nsec >= 1000000000) {
    now.tv_sec++;
    now.tv_nsec -= 1000000000;
  }
  return now;
}

} // namespace

extern "C" long vis_cxx_futex(int, const void* word, int operation, int value, const void* timeout, int, int) {
  uintptr_t hash = reinterpret_cast<uintptr_t>(word) * 0x9E3779B97F4A7C15u;
  Place& place = places[hash >> 60];
  pthread_mutex_lock(&place.lock);
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) {
    // Once per call: libc++ looks at the word itself when it comes back.
    if (__atomic_load_n(static_cast<const int*>(word), __ATOMIC_SEQ_CST) == value) {
      struct timespec until = deadline(*static_cast<const struct timespec*>(timeout));
      pthread_cond_timedwait(&place.changed, &place.lock, &until);
    }
  } else {
    // Several words share a place, so waking one thread might wake the wrong one.
    pthread_cond_broadcast(&place.changed);
  }
  pthread_mutex_unlock(&place.lock);
  return 0;
}

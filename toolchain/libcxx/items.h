// A list of objects to destroy, the last one first. Threads may add to it at the same time.

#include <stdlib.h>

namespace {

struct Item {
  void (*destroy)(void*);
  void* object;
  Item* below;
};

inline Item* make_item(void (*destroy)(void*), void* object) {
  Item* item = static_cast<Item*>(malloc(sizeof(Item)));
  if (item)
    *item = Item{destroy, object, nullptr};
  return item;
}

inline void push(Item*& top, Item* item) {
  item->below = __atomic_load_n(&top, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&top, &item->below, item, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

// What is destroyed may add more.
inline void finish(Item*& top) {
  while (Item* item = __atomic_load_n(&top, __ATOMIC_ACQUIRE)) {
    if (!__atomic_compare_exchange_n(&top, &item, item->below, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    item->destroy(item->object);
    free(item);
  }
}

} // namespace

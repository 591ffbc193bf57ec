/* Callbacks for the libraries that call back, compiled once and given to every build of a library. */

#include <stddef.h>
#include <string.h>

struct sink {
    unsigned char *data;
    size_t room;
    size_t size;
    unsigned long long events;
    unsigned long long hash;
};

static void append(struct sink *sink, const void *data, size_t size)
{
    if (sink->room - sink->size >= size) {
        memcpy(sink->data + sink->size, data, size);
        sink->size += size;
    }
    sink->events++;
}

static void note(struct sink *sink, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sink->hash = (sink->hash ^ (unsigned char)text[i]) * 1099511628211ull;
    sink->events++;
}

void sink_markdown(const char *text, unsigned size, void *user)
{
    append(user, text, size);
}

void sink_image(void *user, void *data, int size)
{
    append(user, data, (size_t)size);
}

int sink_yaml(void *user, unsigned char *data, size_t size)
{
    append(user, data, size);
    return 1;
}

void sink_start(void *user, const char *name, const char **attributes)
{
    note(user, name, strlen(name));
    for (; *attributes; attributes++)
        note(user, *attributes, strlen(*attributes));
}

void sink_end(void *user, const char *name)
{
    note(user, name, strlen(name));
}

void sink_text(void *user, const char *text, int size)
{
    note(user, text, (size_t)size);
}

/* Numbers that look random and are the same in every run: answers must be comparable. */
int steady_numbers(void *user, unsigned char *out, size_t size)
{
    unsigned long long *state = user;
    for (size_t i = 0; i < size; i++) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        out[i] = (unsigned char)(*state >> 56);
    }
    return 0;
}

/* The variadic functions of Lua's C interface that lua.c calls, on top of those that a package can export. */

#include <stdarg.h>
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"

static const char *push(lua_State *L, const char *format, va_list words) {
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (; *format; format++) {
        char text[64];
        const char *word = text;
        if (*format != '%') {
            luaL_addchar(&buffer, *format);
            continue;
        }
        switch (*++format) {
        case 's': word = va_arg(words, const char *); break;
        case 'd': snprintf(text, sizeof text, "%d", va_arg(words, int)); break;
        case 'c': snprintf(text, sizeof text, "%c", va_arg(words, int)); break;
        case 'I': snprintf(text, sizeof text, "%lld", va_arg(words, long long)); break;
        case 'p': snprintf(text, sizeof text, "%p", va_arg(words, void *)); break;
        default: snprintf(text, sizeof text, "%%"); break;
        }
        luaL_addstring(&buffer, word ? word : "(null)");
    }
    luaL_pushresult(&buffer);
    return lua_tostring(L, -1);
}

const char *lua_pushfstring(lua_State *L, const char *format, ...) {
    va_list words;
    va_start(words, format);
    const char *text = push(L, format, words);
    va_end(words);
    return text;
}

int luaL_error(lua_State *L, const char *format, ...) {
    va_list words;
    va_start(words, format);
    luaL_where(L, 1);
    push(L, format, words);
    va_end(words);
    lua_concat(L, 2);
    return lua_error(L);
}

/* Only what lua.c asks for: generational mode with the default parameters. */
int lua_gc(lua_State *L, int what, ...) {
    if (what != LUA_GCGEN) return -1;
    lua_getglobal(L, "collectgarbage");
    lua_pushliteral(L, "generational");
    lua_call(L, 1, 0);
    return 0;
}

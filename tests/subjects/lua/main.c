/* Runs one Lua script in a fresh state, with the standard libraries; its arguments are in `arg`. */
#include <stdio.h>
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int argc, char **argv) {
    lua_State *L = luaL_newstate();
    if (L == NULL || argc < 2) {
        return 2;
    }
    luaL_openlibs(L);
    lua_createtable(L, argc, 0);
    for (int i = 2; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
    int status = luaL_loadfile(L, argv[1]);
    if (status == LUA_OK) {
        status = lua_pcall(L, 0, 0, 0);
    }
    if (status != LUA_OK) {
        printf("error: %s\n", lua_tostring(L, -1));
    }
    lua_close(L);
    return status;
}

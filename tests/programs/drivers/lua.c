/* Runs one Lua script in a fresh state, with the standard libraries; prints what goes wrong. */
#include <stdio.h>
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static int traceback(lua_State *L) {
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  int status;
  if (L == NULL || argc < 2) return 2;
  luaL_openlibs(L);
  lua_pushcfunction(L, traceback);
  status = luaL_loadfile(L, argv[1]);
  if (status == LUA_OK) status = lua_pcall(L, 0, 0, 1);
  if (status != LUA_OK) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  lua_close(L);
  return status;
}

-- Generators, pipelines and coroutines that fail.
math.randomseed(tonumber(arg[1]))
local random = math.random

local function numbers(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
end
local ways = {
  function() local s = 0 for i in numbers(random(30)) do s = s + i end print(s) end,
  function()
    local function filter(f, source)
      return coroutine.wrap(function() for i in source do if f(i) then coroutine.yield(i) end end end)
    end
    local m = random(2, 5)
    for i in filter(function(i) return i % m == 0 end, numbers(random(20))) do io.write(i, " ") end
    print()
  end,
  function()
    local c = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("after " .. b) end)
    print(coroutine.resume(c, random(9)))
    print(coroutine.resume(c, random(9)))
    print(coroutine.status(c), coroutine.resume(c))
  end,
  function()
    local shared = 0
    local c = coroutine.wrap(function() for _ = 1, random(9) do shared = shared + 1 coroutine.yield() end end)
    c() c()
    print(shared, coroutine.isyieldable(), coroutine.running() ~= nil)
  end,
  function()
    local c = coroutine.create(function() coroutine.yield() end)
    coroutine.resume(c)
    print(coroutine.close(c), coroutine.status(c), random(3))
  end,
  function() print(pcall(coroutine.wrap(function() coroutine.yield(random(9)) end))) end,
}
for _ = 1, 3 do ways[random(#ways)]() end

-- Variables that several functions share, on stacks that grow.
math.randomseed(tonumber(arg[1]))
local random = math.random

local function deep(n, f) if n == 0 then return f() end return 1 + deep(n - 1, f) end

local ways = {
  function()
    local count = 0
    local function add() count = count + 1 return count end
    for _ = 1, random(9) do add() end
    print(count)
  end,
  function()
    local made = {}
    for i = 1, random(6) do made[i] = function() i = i + 1 return i end end
    for _, f in ipairs(made) do io.write(f(), " ", f(), " ") end
    print()
  end,
  function()
    -- The variable is still on the stack when that has to move.
    local sum, name = 0, "n" .. random(9)
    local result = deep(random(4, 190), function() sum = sum + 1 name = name .. "!" return sum end)
    print(result, sum, name)
  end,
  function()
    -- Many variables are, from the first to the last of a deep recursion.
    local function nest(n)
      local value = n
      local function more() value = value + 1 return value end
      if n == 0 then return more() end
      local result = nest(n - 1)
      return result + more() + value
    end
    print(nest(random(1, 150)))
  end,
  function() print(deep(random(60), function() return 0 end)) end,
  function()
    local function y(f) return (function(x) return x(x) end)(function(x) return f(function(...) return x(x)(...) end) end) end
    print(y(function(self) return function(n) return n == 0 and 1 or n * self(n - 1) end end)(random(12)))
  end,
  function() local function v(...) return select("#", ...), ... end print(v(table.unpack({ 1, 2, 3 }, 1, random(3)))) end,
  function()
    local log = {}
    do
      local held <close> = setmetatable({}, { __close = function() log[#log + 1] = "closed" end })
      log[#log + 1] = "open"
    end
    print(table.concat(log, " "), random(3))
  end,
}
for _ = 1, 3 do ways[random(#ways)]() end

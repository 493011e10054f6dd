-- Classes, operators, weak tables and what the collector takes.
math.randomseed(tonumber(arg[1]))
local random = math.random

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return Point.new(a.x + b.x, a.y + b.y) end
Point.__eq = function(a, b) return a.x == b.x and a.y == b.y end
Point.__lt = function(a, b) return a.x < b.x end
Point.__le = function(a, b) return a.x <= b.x end
Point.__tostring = function(p) return "(" .. p.x .. " " .. p.y .. ")" end
Point.__len = function(p) return p.x end
Point.__call = function(p, f) return p.x * f end
Point.__concat = function(a, b) return tostring(a) .. tostring(b) end
function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end

local function point() return Point.new(random(9), random(9)) end
local ways = {
  function()
    -- What is old holds what is new, while the collector is at work.
    local old, count = {}, random(300, 3000)
    for i = 1, count do old[i] = "name " .. i .. " of " .. count end
    for i = 1, count do old[i] = old[i] .. "!" .. ("x"):rep(i % 40) end
    print(#table.concat(old), old[1], old[count])
  end,
  function() print(tostring(point() + point())) end,
  function() print(point() == point(), point() < point(), point() <= point()) end,
  function() print(#point(), point()(random(5)), point() .. "!" .. point()) end,
  function()
    local weak = setmetatable({}, { __mode = "k" })
    for _ = 1, random(20) do weak[{}] = true end
    local kept = {}
    weak[kept] = "kept"
    collectgarbage()
    local count = 0
    for _ in pairs(weak) do count = count + 1 end
    print(count)
  end,
  function()
    local gone = 0
    for _ = 1, random(8) do setmetatable({}, { __gc = function() gone = gone + 1 end }) end
    collectgarbage()
    print(gone)
  end,
  function()
    local t = setmetatable({}, { __index = function(_, k) return k .. "?" end, __newindex = function(t, k, v) rawset(t, k, v * 2) end })
    t.a = random(9)
    print(t.a, t.b, rawget(t, "b"))
  end,
  function()
    collectgarbage(random(2) == 1 and "generational" or "incremental")
    local list
    for i = 1, random(2000) do list = { next = list, value = "v" .. i % 50 } end
    local count = 0
    while list do count = count + #list.value list = list.next end
    print(count)
  end,
}
for _ = 1, 4 do ways[random(#ways)]() end
